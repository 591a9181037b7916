//! What people do with sagas and their sub-sagas. Each is acted on by its own key, and the other one follows.

use std::time::Duration;

use saga_core::StepPhase;
use saga_core::engine::{CompensationCause, ControlOutcome, RestartOutcome, RuntimeError};
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::Status;
use saga_core::{Outcome, Runtime, Saga, StepError, SubSaga, saga_step};
use tokio::time::sleep;

use crate::sub_sagas::beside::{
    Door, LONG, ORDER, SOON, Shop, counted, loaded, loaded_and_counted, runtime, seen, until, until_it_is,
};
use crate::sub_sagas::{Order, Step, log, status_of};

const WHY: &str = "somebody wants it so";
const HOUR: Duration = Duration::from_hours(1);

async fn refusal<T: std::fmt::Debug>(action: impl Future<Output = Result<T, RuntimeError>>) -> String {
    action.await.unwrap_err().to_string()
}

async fn child_of(runtime: &Runtime<MemoryStore>) -> Option<Status> {
    seen(runtime, "o-1").await.steps[0].child.as_ref().and_then(|child| child.status)
}

/// It ends as if its saga had failed by itself.
#[tokio::test(start_paused = true)]
async fn a_sub_saga_that_is_cancelled_rejects_its_step() {
    let (saga, door) = (loaded(), Door::is(Shop::Closed));
    let (store, runtime) = runtime(&saga, &door).await;
    let running = runtime.start(&saga, "o-1", ORDER).await.unwrap();
    until(&runtime, "o-1>loading", |status| status.steps[1].attempts == 1).await;
    assert_eq!(runtime.cancel("o-1>loading", WHY).await.unwrap(), ControlOutcome::Applied);
    let Outcome::Compensated { failed_step, reason, cause, .. } = running.outcome().await.unwrap() else {
        panic!("it is undone")
    };
    assert_eq!((failed_step.as_str(), reason.message(), cause), ("loading", WHY, CompensationCause::StepFailed));
    assert_eq!(log(&store), ["pack 2", "unpack 2"]);
    runtime.shutdown().await;
}

/// Nothing of it was started, so nothing of it can be: its key is taken.
#[tokio::test(start_paused = true)]
async fn g5_a_sub_saga_that_was_never_started_is_barred_by_a_cancel() {
    let (saga, door) = (loaded(), Door::default());
    let (store, runtime) = runtime(&saga, &door).await;
    let running = runtime.start(&saga, "o-1", ORDER).after(HOUR).await.unwrap();
    let began = tokio::time::Instant::now();
    runtime.cancel("o-1", WHY).await.unwrap();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::Cancelled, .. }
    ));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(status_of(&store, "o-1>loading").await, Some(Status::Compensated));
    sleep(2 * HOUR).await;
    assert_eq!(log(&store), [""; 0]);
    runtime.shutdown().await;
}

/// The saga waits for it as long as it is paused.
#[tokio::test(start_paused = true)]
async fn a_paused_sub_saga_is_turned_round_and_undone_when_it_is_resumed() {
    let (saga, door) = (loaded(), Door::is(Shop::Closed));
    let (store, runtime) = runtime(&saga, &door).await;
    let running = runtime.start(&saga, "o-1", ORDER).await.unwrap();
    until(&runtime, "o-1>loading", |status| status.steps[1].attempts == 1).await;
    assert_eq!(runtime.admin().control("o-1>loading").pause(WHY).await.unwrap(), ControlOutcome::Applied);
    assert_eq!(child_of(&runtime).await, Some(Status::Paused));
    runtime.cancel("o-1", WHY).await.unwrap();
    sleep(LONG).await;
    assert_eq!(seen(&runtime, "o-1").await.summary.status, Status::Compensating);
    assert_eq!(child_of(&runtime).await, Some(Status::Paused));
    assert_eq!(log(&store), ["pack 2"]);
    runtime.admin().control("o-1>loading").resume(WHY).await.unwrap();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::Cancelled, .. }
    ));
    assert_eq!(log(&store), ["pack 2", "unpack 2"]);
    runtime.shutdown().await;
}

/// A pause is for one saga. What runs as a step of a paused one comes to its end, like any step that has begun.
#[tokio::test(start_paused = true)]
async fn a_sub_saga_of_a_paused_saga_comes_to_its_end() {
    let (saga, door) = (loaded(), Door::is(Shop::Closed));
    let (store, runtime) = runtime(&saga, &door).await;
    let running = runtime.start(&saga, "o-1", ORDER).await.unwrap();
    until(&runtime, "o-1>loading", |status| status.steps[1].attempts == 1).await;
    runtime.admin().control("o-1").pause(WHY).await.unwrap();
    door.set(Shop::Open);
    sleep(HOUR).await;
    until_it_is(&runtime, "o-1>loading", Status::Completed).await;
    sleep(HOUR).await;
    assert_eq!((seen(&runtime, "o-1").await.summary.status, log(&store)), (Status::Paused, vec!["pack 2".to_owned()]));
    let began = tokio::time::Instant::now();
    runtime.admin().control("o-1").resume(WHY).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(log(&store), ["pack 2", "tell"]);
    runtime.shutdown().await;
}

/// Turning a sub-saga round is something new, for which a pause has to end.
#[tokio::test(start_paused = true)]
async fn a_paused_saga_that_is_cancelled_turns_its_sub_saga_round_when_it_is_resumed() {
    let (saga, door) = (loaded(), Door::is(Shop::Closed));
    let (store, runtime) = runtime(&saga, &door).await;
    let running = runtime.start(&saga, "o-1", ORDER).await.unwrap();
    until(&runtime, "o-1>loading", |status| status.steps[1].attempts == 1).await;
    runtime.admin().control("o-1").pause(WHY).await.unwrap();
    runtime.cancel("o-1", WHY).await.unwrap();
    sleep(LONG).await;
    assert_eq!(
        (seen(&runtime, "o-1").await.summary.status, child_of(&runtime).await),
        (Status::Paused, Some(Status::Running))
    );
    runtime.admin().control("o-1").resume(WHY).await.unwrap();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::Cancelled, .. }
    ));
    assert_eq!(log(&store), ["pack 2", "unpack 2"]);
    runtime.shutdown().await;
}

/// What the result step gave is what the step gives. Without it a person says what that is.
#[tokio::test(start_paused = true)]
async fn a_sub_saga_that_is_forced_to_complete_without_a_result_needs_a_person_once_more() {
    let (saga, door) = (counted(), Door::is(Shop::Closed));
    let (store, runtime) = runtime(&saga, &door).await;
    let running = runtime.start(&saga, "o-1", ORDER).await.unwrap();
    let child = until_it_is(&runtime, "o-1>counting", Status::Stuck).await;
    runtime.admin().control("o-1>counting").at_revision(child.revision).force_completed(WHY).await.unwrap();
    let Outcome::Stuck { step, reason, .. } = running.outcome().await.unwrap() else { panic!("it has no result") };
    assert_eq!(step, "counting");
    assert_eq!(
        reason,
        "the result of the saga o-1>counting cannot be taken: an operator skipped its step `count` without an output"
    );

    let operator = runtime.admin().control("o-1").at_revision(seen(&runtime, "o-1").await.revision);
    let said = refusal(operator.retry_with(&ORDER, WHY)).await;
    assert!(said.contains("the saga o-1>counting was started with the input that it had"), "{said}");
    operator.skip_with(&2_u32, WHY).await.unwrap();
    assert!(matches!(running.closed().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(log(&store), ["pack 2", "accept"]);
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_sub_saga_that_is_ended_as_compensated_rejects_its_step() {
    let (saga, door) = (counted(), Door::is(Shop::Closed));
    let (store, runtime) = runtime(&saga, &door).await;
    let running = runtime.start(&saga, "o-1", ORDER).await.unwrap();
    let child = until_it_is(&runtime, "o-1>counting", Status::Stuck).await;
    runtime.admin().control("o-1>counting").at_revision(child.revision).force_compensated(WHY).await.unwrap();
    let Outcome::Compensated { failed_step, reason, .. } = running.outcome().await.unwrap() else { panic!("no") };
    assert_eq!((failed_step.as_str(), reason.message()), ("counting", WHY));
    assert_eq!(log(&store), ["pack 2"], "what stood stays, as the person said");
    runtime.shutdown().await;
}

/// What is under way of a saga that a person ended is not left alone: it turns round, and what it did is undone.
#[tokio::test(start_paused = true)]
async fn g5_a_sub_saga_of_a_saga_that_was_ended_as_compensated_turns_round() {
    let (saga, door) = (loaded_and_counted(), Door::is(Shop::Closed));
    let (store, runtime) = runtime(&saga, &door).await;
    runtime.start(&saga, "o-1", ORDER).await.unwrap();
    let stuck = until_it_is(&runtime, "o-1", Status::Stuck).await;
    until(&runtime, "o-1>loading", |status| status.steps[1].attempts == 1).await;
    sleep(LONG).await;
    let revision = seen(&runtime, "o-1").await.revision.max(stuck.revision);
    let began = tokio::time::Instant::now();
    runtime.admin().control("o-1").at_revision(revision).force_compensated(WHY).await.unwrap();
    until_it_is(&runtime, "o-1>loading", Status::Compensated).await;
    let status = until(&runtime, "o-1", |status| status.steps[0].phase == StepPhase::Cancelled).await;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(
        (status.summary.status, log(&store)),
        (Status::Compensated, vec!["pack 2".to_owned(), "unpack 2".to_owned()])
    );
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_sub_saga_of_a_saga_that_was_ended_as_completed_comes_to_its_end() {
    let (saga, door) = (loaded_and_counted(), Door::is(Shop::Closed));
    let (store, runtime) = runtime(&saga, &door).await;
    runtime.start(&saga, "o-1", ORDER).await.unwrap();
    until_it_is(&runtime, "o-1", Status::Stuck).await;
    until(&runtime, "o-1>loading", |status| status.steps[1].attempts == 1).await;
    runtime
        .admin()
        .control("o-1")
        .at_revision(seen(&runtime, "o-1").await.revision)
        .force_completed(WHY)
        .await
        .unwrap();
    door.set(Shop::Open);
    sleep(HOUR).await;
    let status = until(&runtime, "o-1", |status| status.steps[0].phase == StepPhase::Done).await;
    assert_eq!((status.summary.status, child_of(&runtime).await), (Status::Completed, Some(Status::Completed)));
    assert_eq!(log(&store), ["pack 2"]);
    runtime.shutdown().await;
}

/// A sub-saga that was taken over belongs to the old saga. One that is done again is done under the new key.
#[tokio::test(start_paused = true)]
async fn g5_a_restart_takes_a_sub_saga_over_or_does_it_anew() {
    let (saga, door) = (counted(), Door::default());
    let (store, runtime) = runtime(&saga, &door).await;
    runtime.start(&saga, "o-1", ORDER).await.unwrap().outcome().await.unwrap();
    let said = refusal(runtime.admin().control("o-1>counting").restart("count", "o-2", WHY)).await;
    assert!(said.contains("it is a step of the saga `o-1`: restart that saga"), "{said}");

    let restart = runtime.admin().control("o-1").restart("accept", "o-2", WHY).await.unwrap();
    assert_eq!(restart, RestartOutcome::Begun);
    let outcome = runtime.attach("o-2").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(
        (status_of(&store, "o-2>counting").await, seen(&runtime, "o-2").await.steps[0].phase),
        (None, StepPhase::Skipped)
    );

    runtime.admin().control("o-1").restart("counting", "o-3", WHY).await.unwrap();
    let outcome = runtime.attach("o-3").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(status_of(&store, "o-3>counting").await, Some(Status::Completed));
    assert_eq!(log(&store), ["pack 2", "accept", "accept", "pack 2", "accept"]);
    runtime.shutdown().await;
}

/// Who ends a sub-saga as completed says nothing of the saga that is undone: what stands of the sub-saga is undone with it.
#[tokio::test(start_paused = true)]
async fn g5_a_sub_saga_that_is_ended_as_completed_is_undone_with_its_saga() {
    let (saga, door) = (counted(), Door::default());
    let (store, runtime) = runtime(&saga, &door).await;
    let refused = Order { refused: Some(Step::Bill), ..ORDER };
    let running = runtime.start(&saga, "o-1", refused).await.unwrap();
    // Its undo is stuck in front of a closed door.
    let child = until_it_is(&runtime, "o-1>counting", Status::Stuck).await;
    runtime.admin().control("o-1>counting").at_revision(child.revision).force_completed(WHY).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Compensated { .. }));
    assert_eq!(status_of(&store, "o-1>counting").await, Some(Status::Compensated));
    assert_eq!(log(&store), ["pack 2", "unpack 2"]);
    runtime.shutdown().await;
}

#[saga_step(no_compensation)]
async fn a_step_that_has_the_longest_legal_name(_tx: &mut MemoryConn, _order: Order) -> Result<(), StepError> {
    Ok(())
}

struct LongNamed;

impl SubSaga for LongNamed {
    const NAME: &'static str = "a-saga-that-has-nearly-the-longest-name";
    type Input = Order;
    type Output = ();
}

/// G8: one that `start` refuses would be stuck at its sub-saga.
#[tokio::test(start_paused = true)]
async fn g8_a_restart_checks_the_length_of_the_new_key() {
    let child = Saga::named("child").input::<Order>().step::<a_step_that_has_the_longest_legal_name>();
    let saga = Saga::named("outer").input::<Order>().sub_saga::<LongNamed>(&child.build().unwrap()).build().unwrap();
    let (_store, runtime) = runtime(&saga, &Door::default()).await;
    let outcome = runtime.start(&saga, "o-1", ORDER).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    let long = "k".repeat(120);
    let started = runtime.start(&saga, &long, ORDER).await.unwrap_err().to_string();
    assert!(started.contains("has 120 bytes; at most"), "{started}");
    assert_eq!(refusal(runtime.admin().control("o-1").restart(LongNamed::NAME, &long, WHY)).await, started);
    runtime.shutdown().await;
}
