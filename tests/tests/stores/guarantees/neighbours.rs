//! G8 and G10: what one saga does to the others.

use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::store::Status;
use saga_core::{Outcome, StartError};
use saga_tests::{Act, Fixture, Order, Shop, eventually, on_both_stores, within};

use crate::guarantees::is_completed;

/// G8: No input makes the runtime lose a saga, spin, or block other sagas: malformed, oversized, unknown and poisonous
/// messages become dead letters or stuck sagas, with a reason.
async fn g8_bad_sagas_block_nobody_and_each_has_a_reason<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.builder().settings(|settings| settings.transactions_max = 1).start().await.unwrap();
    let bad = [("panic", Act::Panic), ("commit", Act::EndTransaction), ("reject", Act::Reject), ("fail", Act::Fail)];
    for (key, act) in bad {
        fixture.world.always(&format!("{key}:book"), act);
    }
    fixture.world.always("ship:ship", Act::Panic);
    let mut running = Vec::new();
    for n in 0..20 {
        let key = bad.get(n % 5).map_or("ship", |(key, _)| key);
        let key = if n < 5 { key.to_owned() } else { format!("good{n}") };
        running.push((n, runtime.start(&fixture.saga, &key, Order::of(1)).await.unwrap()));
    }
    for (n, running) in running {
        let outcome = running.outcome().await.unwrap();
        match &outcome {
            Outcome::Completed { .. } => assert!(n >= 5, "{n}"),
            Outcome::Compensated { reason, .. } => assert!(n < 5 && !reason.message().is_empty()),
            Outcome::Tombstone { .. } => panic!("nothing is purged here"),
            Outcome::Stuck { step, reason, .. } => assert!(n < 5 && !step.is_empty() && !reason.is_empty()),
        }
    }
    let count = runtime.admin().query().count().await.unwrap();
    assert_eq!((count[&Status::Completed], count[&Status::Compensated], count[&Status::Stuck]), (15, 3, 2));
    assert_eq!(
        fixture.store.total("booked").await,
        16,
        "each of the good ones once, and the one that is stuck behind it"
    );
    assert!(runtime.admin().query().orphaned(9).await.unwrap().is_empty());
}

/// G10: A dropped future, a panic in a step and a shutdown at any moment leave the others intact.
async fn g10_a_shutdown_in_the_middle_leaves_the_rest_to_the_next<S: Shop>() {
    let mut fixture = Fixture::<S>::new().await;
    for round in 0..5 {
        let runtime = fixture.runtime().await;
        // Each round ends a little later in the life of its sagas.
        let wanted = fixture.world.calls().len() + 4 * round;
        for n in 0..6 {
            let key = format!("k{round}-{n}");
            if n == 0 {
                fixture.world.plan(&format!("{key}:charge"), [Act::Fail]);
                fixture.world.plan(&format!("{key}:ship"), [Act::Reject]);
            }
            runtime.start(&fixture.saga, &key, Order::of(1)).await.unwrap();
        }
        eventually("some calls", async || (fixture.world.calls().len() >= wanted).then_some(())).await;
        runtime.shutdown().await;
        let refused = runtime.start(&fixture.saga, "late", Order::of(1)).await.unwrap_err();
        assert!(matches!(refused, StartError::ShuttingDown), "{refused}");
        drop(runtime);
        fixture = fixture.reopened().await;
    }
    let runtime = fixture.runtime().await;
    for round in 0..5 {
        for n in 0..6 {
            let key = format!("k{round}-{n}");
            let outcome = runtime.attach(&key).await.unwrap().outcome().await.unwrap();
            assert_eq!(is_completed(&outcome), n != 0, "{key}: {outcome}");
            assert_eq!(fixture.store.total(&format!("{key}:book")).await, 1, "{key}");
            assert_eq!(fixture.world.standing(&format!("{key}:charge")), i64::from(n != 0), "{key}");
        }
    }
    assert_eq!(fixture.store.total("booked").await, 25);
}

/// G10: dropping whatever a caller holds changes nothing for the saga.
async fn g10_dropped_handles_and_waits_change_nothing<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.plan("k:charge", [Act::Gate("go")]);
    let running = runtime.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(50), running.outcome()).await;
    assert!(waited.is_err(), "it is under way");
    drop(running);
    drop(runtime.clone());
    fixture.world.open("go");
    let outcome = runtime.attach("k").await.unwrap().outcome().await.unwrap();
    assert!(is_completed(&outcome), "{outcome}");
    assert_eq!(fixture.world.calls(), ["k:book", "k:charge", "k:ship", "k:finish"]);
}

/// G10: a shutdown waits for a call that is under way, and gives up one that does not end.
#[tokio::test(start_paused = true)]
async fn g10_a_shutdown_waits_for_what_is_under_way() {
    within(async {
        let fixture = Fixture::<MemoryStore>::new().await;
        let runtime = fixture.runtime().await;
        fixture.world.plan("k:charge", [Act::Gate("go")]);
        runtime.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
        eventually("the call", async || (fixture.world.calls_of("k:charge") == 1).then_some(())).await;
        let ending = tokio::spawn({
            let runtime = runtime.clone();
            async move { runtime.shutdown().await }
        });
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!ending.is_finished());
        fixture.world.open("go");
        ending.await.unwrap();
        let next = fixture.runtime().await;
        let outcome = next.attach("k").await.unwrap().outcome().await.unwrap();
        assert!(is_completed(&outcome), "{outcome}");
        assert_eq!(fixture.world.calls_of("k:charge"), 1, "its outcome was recorded");
    })
    .await;
}

on_both_stores!(
    g8_bad_sagas_block_nobody_and_each_has_a_reason,
    g10_a_shutdown_in_the_middle_leaves_the_rest_to_the_next,
    g10_dropped_handles_and_waits_change_nothing,
);
