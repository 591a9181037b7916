//! Locks of sagas that an operator or another process goes on with.

use saga_core::store::Status;
use saga_core::{Outcome, Runtime, Wait};

use crate::semantic_locks::support::{Credit, Go, Order, Stock, World, account, charge, named, ship, world};

/// A lock that an operator ends goes to the next saga, and the saga begins no step without it.
#[tokio::test(start_paused = true)]
async fn a_saga_without_its_lock_begins_no_step() {
    let saga = named()
        .semantic_lock::<Credit, _>(account)
        .step::<charge>()
        .wait_for::<Go>(Wait::without_limit())
        .step::<ship>()
        .build()
        .unwrap();
    let world = world(&saga).await;
    let admin = world.runtime.admin().actor("ann");
    let first = world.runtime.start(&saga, "o-1", Order::of(1)).await.unwrap();
    world.until_it_has_begun("o-1", "go").await;
    let control = admin.control("o-1");
    let refused = control.release_lock::<Credit>("it takes too long").await.unwrap_err();
    assert!(refused.to_string().contains("neither stuck nor paused"), "{refused}");
    let refused = control.release_lock::<Stock>("it takes too long").await.unwrap_err();
    assert!(refused.to_string().contains("takes no semantic lock `stock`"), "{refused}");
    control.pause("it takes too long").await.unwrap();
    // The wait for the signal is under way until its row is parked.
    world.runtime.signal("o-1", "go", &Go).await.unwrap();
    while control.release_lock::<Credit>("it takes too long").await.is_err() {
        tokio::task::yield_now().await;
    }
    let second = world.runtime.start(&saga, "o-2", Order::of(2)).await.unwrap();
    world.until_it_has_begun("o-2", "go").await;
    control.resume("go on").await.unwrap();
    let outcome = first.outcome().await.unwrap();
    assert!(outcome.to_string().contains("an operator has ended its semantic lock `credit`"), "{outcome}");
    let refused = control.release_lock::<Credit>("once more").await.unwrap_err();
    assert!(refused.to_string().contains("does not have this semantic lock"), "{refused}");
    control.retry("once more").await.unwrap();
    assert_eq!(world.status("o-1").await.summary.status, Status::Stuck, "a retry begins nothing either");
    control.cancel("it cannot go on").await.unwrap();
    control.skip("it cannot go on").await.unwrap();
    let outcome = first.closed().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    world.runtime.signal("o-2", "go", &Go).await.unwrap();
    second.outcome().await.unwrap();
    assert_eq!(world.calls.all(), ["charge 1", "charge 2", "give back 1", "ship 2"]);
    let history = world.status("o-1").await.history;
    let acts: Vec<String> = history.iter().filter_map(|event| Some(event.audit.as_ref()?.action.clone())).collect();
    assert!(acts.contains(&"release-lock".to_owned()), "{acts:?}");
    world.ends_without_locks().await;
}

/// Another process on the same store hands over what this one waits for.
#[tokio::test(start_paused = true)]
async fn a_wait_outlives_its_process() {
    let saga = named().semantic_lock::<Credit, _>(account).wait_for::<Go>(Wait::without_limit()).build().unwrap();
    let world = world(&saga).await;
    for id in 1..=2 {
        world.runtime.start(&saga, format!("o-{id}"), Order::of(id)).await.unwrap();
        world.until(&format!("o-{id}"), "credit", |status, _| status.steps[0].lock.is_some()).await;
    }
    world.runtime.shutdown().await;
    let runtime = Runtime::builder(world.store.clone()).saga(&saga).state(world.calls.clone()).start().await.unwrap();
    let world = World { runtime, ..world };
    for id in 1..=2 {
        let key = format!("o-{id}");
        world.until_it_has_begun(&key, "go").await;
        world.runtime.signal(&key, "go", &Go).await.unwrap();
        world.runtime.attach(&key).await.unwrap().outcome().await.unwrap();
    }
    world.ends_without_locks().await;
}
