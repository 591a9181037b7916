//! What ends the lock of a step, and what does not.

use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::saga::Branch;
use saga_core::store::Status;
use saga_core::{Outcome, Saga, StepError, saga_step};

use crate::step_locks::support::{Act, Charge, charge, charges, world, world_of};

/// A call that certainly had no effect lets others go on until it is tried again.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_not_sent_does_not_keep_its_lock() {
    let saga = charges();
    let world = world(&saga).await;
    let first = Charge::new(1, "ada", &[Act::NotSent, Act::Succeed]);
    let first = world.runtime.start(&saga, "o-1", first).await.unwrap();
    world.until_it_failed("o-1").await;
    let second = world.runtime.start(&saga, "o-2", Charge::new(2, "ada", &[Act::Succeed])).await.unwrap();
    second.outcome().await.unwrap();
    first.outcome().await.unwrap();
    assert_eq!(world.bank.calls(), ["charge 1", "charge 2", "charge 1"]);
    world.ends_without_locks().await;
}

/// A call that may have had an effect keeps its lock: no other saga calls for the account before the answer is known.
#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_keeps_its_lock() {
    let saga = charges();
    let world = world(&saga).await;
    let first = Charge::new(1, "ada", &[Act::Unknown, Act::Unknown, Act::Succeed]);
    let first = world.runtime.start(&saga, "o-1", first).await.unwrap();
    world.until_it_failed("o-1").await;
    let second = world.runtime.start(&saga, "o-2", Charge::new(2, "ada", &[Act::Succeed])).await.unwrap();
    second.outcome().await.unwrap();
    first.outcome().await.unwrap();
    assert_eq!(world.bank.calls(), ["charge 1", "charge 1", "charge 1", "charge 2"]);
    world.ends_without_locks().await;
}

#[tokio::test(start_paused = true)]
async fn a_rejected_call_ends_its_lock() {
    let saga = charges();
    let world = world(&saga).await;
    for id in 1..=2 {
        let saga = world.runtime.start(&saga, format!("o-{id}"), Charge::new(id, "ada", &[Act::Reject])).await.unwrap();
        assert!(matches!(saga.outcome().await.unwrap(), Outcome::Compensated { .. }));
    }
    world.ends_without_locks().await;
}

/// An operator may take days to decide about a stuck step. Meanwhile other sagas get the account; a retry asks for the lock again.
#[tokio::test(start_paused = true)]
async fn a_step_that_is_stuck_has_no_lock() {
    let saga = charges();
    let world = world(&saga).await;
    let first = world.runtime.start(&saga, "o-1", Charge::new(1, "ada", &[Act::Stick, Act::Succeed])).await.unwrap();
    first.outcome().await.unwrap();
    let second = world.runtime.start(&saga, "o-2", Charge::new(2, "ada", &[Act::Hold])).await.unwrap();
    world.until_called(2).await;
    let admin = world.runtime.admin().actor("ann");
    admin.control("o-1").retry("the bank answers again").await.unwrap();
    world.until_it_waits("o-1").await;
    world.bank.let_one_go();
    second.outcome().await.unwrap();
    assert!(matches!(first.closed().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(world.bank.calls(), ["charge 1", "charge 2", "charge 1"]);
    world.ends_without_locks().await;
}

/// Who waits is cancelled at once, and the next one gets its turn.
#[tokio::test(start_paused = true)]
async fn a_saga_that_waits_can_be_cancelled() {
    let saga = charges();
    let world = world(&saga).await;
    let running = world.hold_for_three(&saga).await;
    world.runtime.admin().actor("ann").control("o-2").cancel("it is not wanted").await.unwrap();
    assert!(matches!(running[1].outcome().await.unwrap(), Outcome::Compensated { .. }));
    for saga in [&running[0], &running[2]] {
        world.bank.let_one_go();
        saga.outcome().await.unwrap();
    }
    assert_eq!(world.bank.calls(), ["charge 1", "charge 3"]);
    world.ends_without_locks().await;
}

#[saga_step(no_compensation)]
async fn weigh(_charge: Charge) -> Result<(), StepError> {
    Err(StepError::reject("too heavy"))
}

/// A branch that fails ends the wait of another one for the lock of its step.
#[tokio::test(start_paused = true)]
async fn a_failed_branch_ends_the_wait_of_another() {
    let held = charges();
    let saga: Saga<MemoryStore, Charge> = Saga::named("deliveries")
        .input::<Charge>()
        .parallel(|group| {
            group
                .branch(Branch::step::<charge>)
                .branch(|branch: Branch<_, _>| branch.sleep("load", Duration::from_secs(5)).step::<weigh>())
        })
        .build()
        .unwrap();
    let world = world_of(&[&held, &saga]).await;
    let first = world.runtime.start(&held, "o-2", Charge::new(2, "ada", &[Act::Hold])).await.unwrap();
    world.until_called(1).await;
    let second = world.runtime.start(&saga, "o-1", Charge::new(1, "ada", &[Act::Succeed])).await.unwrap();
    let outcome = second.outcome().await.unwrap();
    assert!(outcome.to_string().contains("too heavy"), "{outcome}");
    world.bank.let_one_go();
    first.outcome().await.unwrap();
    assert_eq!(world.bank.calls(), ["charge 2"]);
    world.ends_without_locks().await;
}

/// When it is the turn of a paused saga, the next saga gets the account.
#[tokio::test(start_paused = true)]
async fn a_paused_saga_passes_its_turn_on() {
    let saga = charges();
    let world = world(&saga).await;
    let first = world.runtime.start(&saga, "o-1", Charge::new(1, "ada", &[Act::Hold])).await.unwrap();
    world.until_called(1).await;
    let second = world.runtime.start(&saga, "o-2", Charge::new(2, "ada", &[Act::Succeed])).await.unwrap();
    world.until_it_waits("o-2").await;
    let admin = world.runtime.admin().actor("ann");
    admin.control("o-2").pause("it looks odd").await.unwrap();
    let third = world.runtime.start(&saga, "o-3", Charge::new(3, "ada", &[Act::Succeed])).await.unwrap();
    world.until_it_waits("o-3").await;
    world.bank.let_one_go();
    first.outcome().await.unwrap();
    third.outcome().await.unwrap();
    assert_eq!(world.status("o-2").await.summary.status, Status::Paused);
    admin.control("o-2").resume("it is well").await.unwrap();
    second.outcome().await.unwrap();
    assert_eq!(world.bank.calls(), ["charge 1", "charge 3", "charge 2"]);
    world.ends_without_locks().await;
}
