//! Turns: which saga is called for an account, and what others see of those that wait.

use saga_core::engine::{LockScope, SemanticLocksFilter};
use saga_core::memory::MemoryStore;
use saga_core::{Entity, Outcome, Saga};

use crate::step_locks::support::{Act, Charge, POLL, charge, charges, ship, world};

/// G5: calls for one account follow each other in the order in which they began to wait, and other accounts go on.
#[tokio::test(start_paused = true)]
async fn g5_calls_for_one_entity_follow_each_other() {
    let saga = charges();
    let world = world(&saga).await;
    let running = world.hold_for_three(&saga).await;
    let bob = world.runtime.start(&saga, "o-4", Charge::new(4, "bob", &[Act::Succeed])).await.unwrap();
    assert!(matches!(bob.outcome().await.unwrap(), Outcome::Completed { .. }));

    let waiting = world.until_it_waits("o-3").await;
    let lock = waiting.lock.as_ref().unwrap();
    assert_eq!((lock.scope, waiting.phase_name), (LockScope::Step, "waiting"));
    assert_eq!(lock.waits_for.iter().map(saga_core::Key::as_str).collect::<Vec<_>>(), ["o-1", "o-2"]);
    assert_eq!((waiting.attempts, waiting.due_at), (0, None), "waiting is no attempt, and has no end");
    let filter = SemanticLocksFilter::of_steps(Entity::new("account", "ada"));
    let listed = world.runtime.admin().query().semantic_locks(filter).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|lock| (lock.key.as_str(), &*lock.lock, lock.status.granted)).collect();
    assert_eq!(listed, [("o-1", "charge", true), ("o-2", "charge", false), ("o-3", "charge", false)]);

    let began = tokio::time::Instant::now();
    for (place, saga) in running.into_iter().enumerate() {
        world.bank.let_one_go();
        assert!(matches!(saga.outcome().await.unwrap(), Outcome::Completed { .. }));
        world.until_called((place + 3).min(4)).await;
    }
    assert!(began.elapsed() < POLL, "a saga waited for a poll");
    assert_eq!(world.bank.calls(), ["charge 1", "charge 4", "charge 2", "charge 3"]);
    world.ends_without_locks().await;
}

/// Many sagas on few accounts, half of which compensate: the bank checks each call.
#[tokio::test(start_paused = true)]
async fn g5_an_undo_takes_the_lock_of_its_step() {
    let saga: Saga<MemoryStore, Charge> =
        Saga::named("charges").input::<Charge>().step::<charge>().step::<ship>().build().unwrap();
    let world = world(&saga).await;
    let mut running = Vec::new();
    for id in 0..60 {
        let charge = Charge::new(id, &format!("account-{}", id % 4), &[Act::Unknown, Act::Succeed]);
        running.push(world.runtime.start(&saga, format!("o-{id}"), charge).await.unwrap());
    }
    let mut compensated = 0;
    for saga in running {
        compensated += usize::from(matches!(saga.outcome().await.unwrap(), Outcome::Compensated { .. }));
    }
    assert_eq!(compensated, 30);
    assert_eq!(world.bank.calls().iter().filter(|call| call.starts_with("give back")).count(), 30);
    world.ends_without_locks().await;
}
