//! Purging: the horizons are enough, and each mistake about them breaks a property.

use saga_models::purging::{Mistake, Purging};

use crate::judged::{finds, judged};

/// G2, G5, G13: a message that is held back until it is nearly too old, clocks that differ, a purge that is late, an operator who
/// ends and reopens a saga, and a key that is used again do no harm.
#[test]
fn g13_the_horizons_are_enough() {
    let (broken, reached) = judged(Purging::sound(), |name| name.starts_with('G'));
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(reached.len(), 4, "only these states are reached: {reached:?}");
}

/// G2, G5, G13: a host that asks for the messages which the broker lost forgets no step of a saga that may still ask for it.
#[test]
fn g13_a_host_that_asks_forgets_nothing_early() {
    let (broken, reached) = judged(Purging::where_closed_is_lost(), |name| name.starts_with('G'));
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(reached.len(), 5, "only these states are reached: {reached:?}");
}

#[test]
fn each_mistake_breaks_what_forbids_it() {
    for (mistake, property) in [
        (Mistake::HostPurgesUntold, "G2 a step takes effect once for a saga"),
        (Mistake::HostPurgesUntold, "G5 what stands is found by its undo"),
        (Mistake::NoMargin, "G13 nothing takes effect for a saga that was purged"),
        (Mistake::ActsOnOldMessages, "G2 a step takes effect once for a saga"),
        (Mistake::ClosesAtTheEnd, "G2 a step takes effect once for a saga"),
        (Mistake::ReusesKeysEarly, "G13 a saga is told of its own step only"),
        (Mistake::ForgetsTheWay, "G13 a saga is told of its own step only"),
        (Mistake::CountsKeysFromTheEnd, "G13 a saga is told of its own step only"),
        (Mistake::ClosesWhatIsKept, "G2 a step takes effect once for a saga"),
        (Mistake::ActsOnOldAnswers, "G2 a step takes effect once for a saga"),
    ] {
        finds(Purging::with(mistake), mistake, property);
    }
    assert_eq!(Mistake::ALL.len(), 9);
}
