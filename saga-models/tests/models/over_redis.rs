//! Holds in Redis: the protocol is enough, and each mistake breaks a property.

use saga_models::over_redis::{Mistake, OverRedis};

use crate::judged::{finds, judged};

const UNREAD: &str = "R-KEY a key that SQL has is not held without a read";

/// R-CAPACITY, R-DURABLE, R-KEY: flushes, crashes and holds that expire do no harm at any point.
#[test]
fn holds_in_redis_are_confirmed_by_sql() {
    let (broken, reached) = judged(OverRedis::sound(), |name| name.starts_with("R-"));
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(reached.len(), 4, "only these states are reached: {reached:?}");
}

#[test]
fn each_mistake_breaks_what_forbids_it() {
    for (mistake, property) in [
        (Mistake::RedisConfirmedFirst, "R-DURABLE what was answered as confirmed is in SQL"),
        (Mistake::MarkExpires, "R-CAPACITY without a flush no more is taken than there is"),
        (Mistake::ToldInAnyEpoch, "R-CAPACITY Redis never believes that more is free"),
        (Mistake::ToldInAnyOrder, "R-CAPACITY Redis never believes that more is free"),
        (Mistake::NoFence, "R-KEY a key that is confirmed is not held again"),
        (Mistake::LoadedBeforeItEnds, UNREAD),
        (Mistake::LoadedOutlivesFlush, UNREAD),
        (Mistake::LoadedInAnyEpoch, UNREAD),
        (Mistake::ReleaseIsNotNoted, UNREAD),
        (Mistake::ReleaseIsNotFenced, UNREAD),
    ] {
        finds(OverRedis::with(mistake), mistake, property);
    }
    assert_eq!(Mistake::ALL.len(), 10);
}
