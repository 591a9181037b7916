//! Reservations: the book and what the stores do around it are enough, and each mistake breaks a property.

use saga_models::reserving::{Mistake, Reserving};

use crate::judged::{finds, judged};

/// R-CAPACITY, R-DURABLE, R-ONCE, R-TOKEN, R-EXPIRY, R-KEY, R-ALL, R-FAIR: messages that are lost, repeated and late, holds
/// that are over, a sweeper and pruning do no harm.
#[test]
fn the_book_is_enough() {
    let (broken, reached) = judged(Reserving::sound(), |name| name.starts_with("R-"));
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(reached.len(), 5, "only these states are reached: {reached:?}");
}

#[test]
fn each_mistake_breaks_what_forbids_it() {
    for (mistake, property) in [
        (Mistake::SweepsWhatItRead, "R-DURABLE what was answered as confirmed stays so"),
        (Mistake::ServersClock, "R-EXPIRY a late confirmation has a new token"),
        (Mistake::SweepersClock, "R-EXPIRY a hold lasts until its time"),
        (Mistake::ReleaseAddsTwice, "R-CAPACITY there is one of each, and no more is taken"),
        (Mistake::TokenIgnored, "R-TOKEN another token changes nothing"),
        (Mistake::NoTombstone, "R-KEY what has ended is not held again"),
        (Mistake::LinesOneByOne, "R-ALL a refused operation changes nothing"),
        (Mistake::ExtendRevives, "R-KEY what has ended is not held again"),
        (Mistake::RefusesUnswept, "R-FAIR a request is refused only for those who have the units"),
        (Mistake::DecidesOnOldRows, "R-DURABLE what was answered as confirmed stays so"),
        (Mistake::ForgetsEarly, "R-KEY what has ended is not held again"),
    ] {
        finds(Reserving::with(mistake), mistake, property);
    }
    assert_eq!(Mistake::ALL.len(), 11);
}
