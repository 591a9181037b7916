//! Turns: which saga has an entity, how long another one waits, and what ends a deadlock.

use saga_core::engine::WaitKind;
use saga_core::{Entity, Outcome, Wait};

use crate::semantic_locks::support::{
    Credit, Go, HOUR, Order, POLL, Stock, account, charge, check, item, named, note_tokens, ship, world,
};

/// G5: the next saga gets the account when the first one has ended, and sees nothing of it before.
#[tokio::test(start_paused = true)]
async fn g5_a_saga_waits_until_the_one_before_has_ended() {
    let saga = named()
        .semantic_lock::<Credit, _>(|order: &Order| [account(order), Entity::new("order", order.id)])
        .step::<note_tokens>()
        .step::<charge>()
        .wait_for::<Go>(Wait::without_limit())
        .step::<ship>()
        .build()
        .unwrap();
    let world = world(&saga).await;
    let mut started = Vec::new();
    for id in 1..=3 {
        started.push(world.runtime.start(&saga, format!("o-{id}"), Order::of(id)).await.unwrap());
        if id == 1 {
            world.until_it_has_begun("o-1", "go").await;
        } else {
            world.until_it_waits_for_lock(&format!("o-{id}"), "credit").await;
        }
    }
    let status = world.status("o-3").await;
    let lock = status.steps[0].lock.as_ref().unwrap();
    assert_eq!(status.steps[0].waits_for(), Some(WaitKind::SemanticLock));
    assert_eq!(lock.waits_for.iter().map(saga_core::Key::as_str).collect::<Vec<_>>(), ["o-1", "o-2"]);
    assert_eq!(status.steps[0].attempts, 0, "waiting is no attempt");
    assert_eq!(status.steps[0].due_at, None, "it waits without a limit");
    let began = tokio::time::Instant::now();
    for id in 1..=3 {
        let key = format!("o-{id}");
        world.until_it_has_begun(&key, "go").await;
        world.runtime.signal(&key, "go", &Go).await.unwrap();
        let outcome = started.remove(0).outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    }
    assert!(began.elapsed() < POLL, "a saga waited for a poll");
    let expected: Vec<String> =
        (1..=3).flat_map(|id| ["token for", "charge", "ship"].map(|what| format!("{what} {id}"))).collect();
    assert_eq!(world.calls.all(), expected);
    world.ends_without_locks().await;
}

/// The lock lasts to the last undo, not to the failure.
#[tokio::test(start_paused = true)]
async fn g5_a_lock_lasts_until_the_last_undo() {
    let saga = named().semantic_lock::<Credit, _>(account).step::<charge>().step::<check>().step::<ship>();
    let saga = saga.build().unwrap();
    let world = world(&saga).await;
    let orders = (1..=8).map(|id| Order { is_refused: id % 2 == 1, ..Order::of(id) });
    let mut started = Vec::new();
    for order in orders {
        started.push(world.runtime.start(&saga, format!("o-{}", order.id), order).await.unwrap());
    }
    for saga in started {
        saga.outcome().await.unwrap();
    }
    // Whatever the order of the sagas, all that was done for one of them is together.
    let calls = world.calls.all();
    let of = |call: &String| call.rsplit_once(' ').unwrap().1.to_owned();
    let mut turns: Vec<String> = calls.iter().map(of).collect();
    turns.dedup();
    assert_eq!(turns.len(), 8, "{calls:?}");
    assert_eq!(calls.iter().filter(|call| call.starts_with("give back")).count(), 4, "{calls:?}");
    world.ends_without_locks().await;
}

#[tokio::test(start_paused = true)]
async fn a_saga_that_waited_long_enough_compensates() {
    let saga = named()
        .step::<charge>()
        .semantic_lock_within::<Credit, _>(HOUR, account)
        .wait_for::<Go>(Wait::without_limit())
        .build()
        .unwrap();
    let world = world(&saga).await;
    let first = world.runtime.start(&saga, "o-1", Order::of(1)).await.unwrap();
    world.until_it_has_begun("o-1", "go").await;
    let second = world.runtime.start(&saga, "o-2", Order::of(2)).await.unwrap();
    let waiting = world.until_it_waits_for_lock("o-2", "credit").await;
    assert!(waiting.steps[1].due_at.is_some(), "the status says until when it waits");
    let outcome = second.outcome().await.unwrap();
    let expected = "it waited 3600s for its semantic lock `credit`, and the saga `o-1` was in front of it";
    assert!(outcome.to_string().contains(expected), "{outcome}");
    assert_eq!(world.calls.all(), ["charge 1", "charge 2", "give back 2"]);
    world.runtime.signal("o-1", "go", &Go).await.unwrap();
    first.outcome().await.unwrap();
    world.ends_without_locks().await;
}

/// One saga takes the account first, the other one the item: the younger one turns round, and the older one goes on.
#[tokio::test(start_paused = true)]
async fn of_two_sagas_that_wait_for_each_other_the_younger_turns_round() {
    let saga = named()
        .semantic_lock::<Credit, _>(|order: &Order| if order.id == 1 { account(order) } else { item(order) })
        .step::<charge>()
        .wait_for::<Go>(Wait::without_limit())
        .semantic_lock::<Stock, _>(|order: &Order| if order.id == 1 { item(order) } else { account(order) })
        .step::<ship>()
        .build()
        .unwrap();
    for first in [1, 2] {
        let world = world(&saga).await;
        let mut started = Vec::new();
        for id in 1..=2 {
            started.push(world.runtime.start(&saga, format!("o-{id}"), Order::of(id)).await.unwrap());
            world.until_it_has_begun(&format!("o-{id}"), "go").await;
        }
        // Whichever closes the ring.
        world.runtime.signal(format!("o-{first}"), "go", &Go).await.unwrap();
        world.until_it_waits_for_lock(&format!("o-{first}"), "stock").await;
        world.runtime.signal(format!("o-{}", 3 - first), "go", &Go).await.unwrap();
        let young = started.pop().unwrap().outcome().await.unwrap();
        assert!(young.to_string().contains("deadlock with `o-1`"), "{young}");
        let old = started.pop().unwrap().outcome().await.unwrap();
        assert!(matches!(old, Outcome::Completed { .. }), "{old}");
        assert_eq!(world.calls.all(), ["charge 1", "charge 2", "give back 2", "ship 1"]);
        world.ends_without_locks().await;
    }
}
