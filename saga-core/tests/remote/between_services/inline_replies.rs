//! A reply is recorded by the transaction of the step behind it, or alone: nothing is lost, and nothing happens twice.

use std::sync::atomic::Ordering;

use saga_core::Outcome;
use saga_core::engine::{CompensationCause, ControlOutcome};

use crate::between_services::commit_fates::Fate;
use crate::between_services::services::Services;
use crate::between_services::steps::Confirming;

/// One more order than the two before, whose last step transaction has this fate; answers how many records and step transactions
/// were committed.
async fn order_with(fate: Fate) -> (u32, u32) {
    let services = Services::known().await;
    let before = services.of_orders.records_and_steps();
    services.of_orders.next([Fate::Commits, fate]);
    services.order("third").await;
    assert_eq!((services.charged(), services.confirmed()), (3, 3));
    let after = services.of_orders.records_and_steps();
    (after.0 - before.0, after.1 - before.1)
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_recorded_by_the_step_behind_it() {
    assert_eq!(order_with(Fate::Commits).await, (0, 2));
}

/// G3: the outcome of the other service is recorded once, and not lost.
#[tokio::test(start_paused = true)]
async fn g3_a_reply_is_recorded_alone_if_the_transaction_of_the_step_fails() {
    assert_eq!(order_with(Fate::Fails).await, (1, 2));
}

/// G2: the step behind the reply takes effect once, although the store did not answer that it had.
#[tokio::test(start_paused = true)]
async fn g2_a_reply_whose_commit_is_in_doubt_is_not_recorded_twice() {
    assert_eq!(order_with(Fate::IsLost).await, (0, 1), "the commit in doubt is not counted");
    assert_eq!(order_with(Fate::IsLostAndRolledBack).await, (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_leaves_the_reply_and_its_attempt() {
    let services = Services::known().await;
    let before = services.of_orders.records_and_steps();
    *services.last_step.next.lock().unwrap() = Some(Confirming::Fails);
    services.order("third").await;
    let after = services.of_orders.records_and_steps();
    assert_eq!((after.0 - before.0, after.1 - before.1), (0, 3), "the first attempt is recorded with the reply");
    assert_eq!((services.charged(), services.confirmed()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_rejects_leaves_the_reply() {
    let services = Services::known().await;
    *services.last_step.next.lock().unwrap() = Some(Confirming::Rejects);
    let outcome = services.outcome("third").await;
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome:?}");
    assert_eq!((services.charged(), services.confirmed()), (3, 2));
    let status = services.orders.status("third").await.unwrap().unwrap();
    assert_eq!(status.steps[1].attempts, 1, "the reply is recorded: {status:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reply_in_front_of_a_slow_step_is_recorded_alone() {
    let services = Services::known().await;
    *services.last_step.next.lock().unwrap() = Some(Confirming::TakesLong);
    services.order("third").await;
    let before = services.of_orders.records_and_steps();
    services.order("fourth").await;
    let after = services.of_orders.records_and_steps();
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 2));
}

/// G2: whatever arrives twice.
#[tokio::test(start_paused = true)]
async fn g2_a_doubled_reply_has_one_effect() {
    let services = Services::known().await;
    services.doubles.store(true, Ordering::Release);
    let before = services.of_orders.records_and_steps();
    for number in 0..10 {
        services.order(&format!("order-{number}")).await;
    }
    let after = services.of_orders.records_and_steps();
    assert_eq!((after.0 - before.0, after.1 - before.1), (0, 20));
    assert_eq!((services.charged(), services.confirmed()), (12, 12));
}

/// G2: two hosts answer at once, and each of them twice.
#[tokio::test(start_paused = true)]
async fn g2_the_step_behind_two_replies_takes_effect_once() {
    let services = Services::known().await;
    services.doubles.store(true, Ordering::Release);
    let order = async |key: &str| {
        let order = services.orders.start(&services.parallel, key, 7).await.unwrap();
        let outcome = order.outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    };
    for number in 0..10 {
        order(&format!("both-{number}")).await;
    }
    assert_eq!((services.charged(), services.confirmed()), (12, 12));
}

/// G5: a step does not take effect behind a cancel that was committed first.
#[tokio::test(start_paused = true)]
async fn g5_a_saga_that_is_cancelled_during_the_step_is_compensated_with_its_reply() {
    let services = Services::known().await;
    services.last_step.has_begun.send_replace(false);
    services.last_step.gate.0.send_replace(false);
    let order = services.orders.start(&services.saga, "third", 7).await.unwrap();
    services.last_step.has_begun.subscribe().wait_for(|has_begun| *has_begun).await.unwrap();
    assert_eq!(services.orders.cancel("third", "too late").await.unwrap(), ControlOutcome::Applied);
    services.last_step.gate.0.send_replace(true);
    let outcome = order.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome:?}");
    assert_eq!((services.charged(), services.confirmed()), (3, 2));
}
