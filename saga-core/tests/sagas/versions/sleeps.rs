//! Moves between versions of which one sleeps and the other does not.

use std::time::Duration;

use saga_core::StepPhase;
use saga_core::memory::MemoryStore;
use saga_core::{Migration, Outcome, Saga};

use super::courier::{Courier, Ship, call_courier, log, move_and_end, pack, step, waiting, wrap};

/// Each order is left to cool for a moment, in front of the courier's call.
fn cooled(version: u32) -> Ship {
    let saga = Saga::named("ship").input().version(version).step::<pack>().sleep("cool-off", Duration::from_millis(1));
    saga.step::<call_courier>().step::<wrap>().build().unwrap()
}

fn at_once(version: u32) -> Ship {
    Saga::named("ship").input().version(version).step::<pack>().step::<call_courier>().step::<wrap>().build().unwrap()
}

#[tokio::test]
async fn a_sleep_that_is_new_is_passed_where_that_is_said() {
    let (from, to, courier) = (at_once(1), cooled(2), Courier::default());
    let store = waiting(&from, &courier, 20).await;
    let migration = Migration::between(&from, &to).build().unwrap();
    let refused = move_and_end(&store, &courier, (&to, &migration), 1).await.unwrap_err();
    assert!(refused.contains("`call-courier` has begun, and `cool-off`, which comes before it"), "{refused}");
    assert!(refused.contains("say so with `.assume_slept(\"cool-off\")`"), "{refused}");
    let migration = Migration::between(&from, &to).assume_slept("cool-off").build().unwrap();
    let (outcome, status) = move_and_end(&store, &courier, (&to, &migration), 2).await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(step(&status, "cool-off").phase, StepPhase::Skipped);
    assert_eq!(log(&store), ["pack 20", "unpack 20"]);
}

#[tokio::test]
async fn a_sleep_that_is_over_can_be_left_out() {
    let (from, to, courier) = (cooled(1), at_once(2), Courier::default());
    let store = waiting(&from, &courier, 20).await;
    let error = Migration::between(&from, &to).build().unwrap_err().to_string();
    assert!(error.contains("has no sleep `cool-off`; leave it out with `.remove_sleep(\"cool-off\")`"), "{error}");
    let migration = Migration::between(&from, &to).remove_sleep("cool-off").build().unwrap();
    let (outcome, _) = move_and_end(&store, &courier, (&to, &migration), 1).await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(log(&store), ["pack 20", "wrap 20"]);
}

/// Nothing would wake it in a version that does not have the sleep.
#[tokio::test]
async fn who_sleeps_is_not_moved_out_of_his_sleep() {
    let (to, courier, store) = (at_once(2), Courier::default(), MemoryStore::new());
    let long = Saga::named("ship").input().step::<pack>().sleep("cool-off", Duration::from_hours(1));
    let long: Ship = long.step::<call_courier>().step::<wrap>().build().unwrap();
    let runtime = super::courier::runtime(&store, &courier, &long).await;
    runtime.start(&long, "k-1", 20).await.unwrap();
    while runtime.status("k-1").await.unwrap().unwrap().steps[1].phase != StepPhase::Started {
        tokio::task::yield_now().await;
    }
    runtime.shutdown().await;
    let migration = Migration::between(&long, &to).remove_sleep("cool-off").build().unwrap();
    let refused = move_and_end(&store, &courier, (&to, &migration), 1).await.unwrap_err();
    assert!(refused.contains("`cool-off` is under way, and the other version does not have it"), "{refused}");
}

#[test]
fn a_migration_says_what_is_no_sleep() {
    let migration = Migration::between(&cooled(1), &at_once(2)).remove_sleep("pack").assume_slept("cool-off");
    let error = migration.build().unwrap_err().to_string();
    for said in ["ship version 1 has no sleep `pack`", "ship version 2 has no sleep `cool-off`"] {
        assert!(error.contains(said), "{error}");
    }
}
