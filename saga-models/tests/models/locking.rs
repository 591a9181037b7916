//! Semantic locks: what the database locks and reads is enough, and each mistake breaks a property.

use saga_models::locking::{Locking, Mistake};

use crate::judged::{finds, judged};

fn is_rule(name: &str) -> bool {
    name.starts_with("S-LOCK") || name.starts_with("each saga")
}

/// S-LOCK-1 to S-LOCK-7, S-LOCK-10, S-LOCK-12: two sagas and two entities, all pairs of up to two locks of each, transactions that take their
/// locks themselves, crashes in the middle of a transaction, and commits that are not heard of.
#[test]
fn what_the_database_locks_is_enough() {
    let (broken, reached) = judged(Locking::sound(), is_rule);
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(reached.len(), 8, "only these states are reached: {reached:?}");
}

#[test]
fn each_mistake_breaks_what_forbids_it() {
    for (mistake, property) in [
        (Mistake::EndsLocksOfOthers, "S-LOCK-1 two sagas never have one entity"),
        (Mistake::TokenOfTheRows, "S-LOCK-2 the tokens of an entity grow"),
        (Mistake::TokenBeforeTheLock, "S-LOCK-2 the tokens of an entity grow"),
        (Mistake::ReadsBeforeItLocks, "S-LOCK-1 two sagas never have one entity"),
        (Mistake::HandsOverLater, "S-LOCK-5 a request that is not blocked does not wait"),
        (Mistake::Overtakes, "S-LOCK-3 no request overtakes one that waits"),
        (Mistake::UnsortedTaking, "each saga comes to its end"),
        (Mistake::EndsBeforeTheUndo, "S-LOCK-1 no saga writes what another one may still undo"),
        (Mistake::LooksForNoRings, "S-LOCK-6 no ring of waits is committed"),
        (Mistake::NoLockOfWaits, "S-LOCK-6 no ring of waits is committed"),
        (Mistake::EndsWithoutTheEntities, "S-LOCK-5 a request that is not blocked does not wait"),
        (Mistake::GivesUpAndStays, "S-LOCK-7 a request that gave up is not granted"),
        (Mistake::TriesWithoutLooking, "S-LOCK-1 no saga writes what another one may still undo"),
        (Mistake::GrantsAgain, "S-LOCK-4 a request that is repeated gets the same answer"),
        (Mistake::KeepsItsLocks, "S-LOCK-5 a saga that has ended has no lock"),
    ] {
        finds(Locking::with(mistake), mistake, property);
    }
    assert_eq!(Mistake::ALL.len(), 15);
}
