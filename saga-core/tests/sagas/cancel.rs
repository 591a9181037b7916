//! A saga that is cancelled: what took effect is undone, and nothing new begins (G5).

use std::sync::{Arc, Mutex};

use saga_core::engine::{CompensationCause, ControlOutcome, RuntimeError, SagaAdmin};
use saga_core::env::TokioEnvironment;
use saga_core::memory::MemoryStore;
use saga_core::store::{HistoryKind, Status};
use saga_core::{Outcome, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use tokio::sync::Notify;

/// What was called, and what holds a call up.
#[derive(Clone, Default)]
struct Outside {
    calls: Arc<Mutex<Vec<String>>>,
    arrived: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Outside {
    fn note(&self, what: &str) {
        self.calls.lock().unwrap().push(what.to_owned());
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

#[saga_step(compensate = refund)]
async fn charge(_order: u32, State(outside): State<Outside>) -> Result<u32, StepError> {
    outside.note("charge");
    Ok(7)
}

#[saga_compensation]
async fn refund(
    ctx: &StepContext,
    _order: u32,
    _paid: Option<u32>,
    State(outside): State<Outside>,
) -> Result<(), StepError> {
    let failure = ctx.failure().unwrap();
    outside.note(&format!("refund, as {} says {:?}", failure.step, failure.message));
    Ok(())
}

/// The call is held up until the test lets it go on.
#[saga_step(compensate = call_back)]
async fn ship(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.arrived.notify_one();
    outside.go_on.notified().await;
    outside.note("ship");
    Ok(())
}

#[saga_compensation]
async fn call_back(_order: u32, _shipped: Option<()>, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.note("call back");
    Ok(())
}

/// Its next attempt is an hour away.
#[saga_step(compensate = call_back, retry(attempts = 9, base = "1h", cap = "1h"), on_exhausted = "compensate")]
async fn ask_carrier(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.arrived.notify_one();
    Err(StepError::not_sent("the service does not answer"))
}

/// Nobody knows whether it happened, and its compensation needs to know.
#[saga_step(compensate = unload, retry(attempts = 1), on_exhausted = "compensate")]
async fn weigh(_order: u32) -> Result<u32, StepError> {
    Err(StepError::retry("the scales are broken"))
}

#[saga_compensation]
async fn unload(_order: u32, _weight: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step]
async fn thank(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.note("thank");
    Ok(())
}

const REASON: &str = "no longer wanted";
const REFUND: &str = "refund, as ship says \"no longer wanted\"";

async fn runtime(saga: &Saga<MemoryStore, u32>, outside: &Outside) -> Runtime<MemoryStore> {
    Runtime::builder(MemoryStore::new()).saga(saga).state(outside.clone()).start().await.unwrap()
}

fn shipping() -> Saga<MemoryStore, u32> {
    Saga::named("shipping").input::<u32>().step::<charge>().step::<ship>().step::<thank>().build().unwrap()
}

async fn until_stuck(runtime: &Runtime<MemoryStore>) -> u64 {
    let outcome = runtime.attach("order").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Stuck { .. }), "{outcome}");
    runtime.status("order").await.unwrap().unwrap().revision
}

#[tokio::test]
async fn g5_what_is_in_flight_comes_to_its_end_and_all_is_undone() {
    let (saga, outside) = (shipping(), Outside::default());
    let runtime = runtime(&saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    outside.arrived.notified().await;
    assert_eq!(runtime.cancel("order", REASON).await.unwrap(), ControlOutcome::Applied);
    assert_eq!(runtime.cancel("order", REASON).await.unwrap(), ControlOutcome::Already);
    assert_eq!(runtime.status("order").await.unwrap().unwrap().summary.status, Status::Compensating);
    outside.go_on.notify_one();

    let outcome = running.outcome().await.unwrap();
    assert_eq!(outcome.to_string(), "compensated, because it was cancelled: no longer wanted");
    assert!(
        matches!(&outcome, Outcome::Compensated { failed_step, cause: CompensationCause::Cancelled, .. } if failed_step == "ship")
    );
    assert_eq!(outside.calls(), ["charge", "ship", "call back", REFUND]);
    assert_eq!(runtime.cancel("order", REASON).await.unwrap(), ControlOutcome::Ended(Status::Compensated));

    let history = runtime.status("order").await.unwrap().unwrap().history;
    let audit: Vec<_> = history.iter().filter(|entry| entry.kind == HistoryKind::Operator).collect();
    assert_eq!(audit.len(), 1, "what changed nothing leaves no line");
    assert_eq!(audit[0].detail, "cancel: no longer wanted");
    runtime.shutdown().await;
}

/// Nobody waits an hour for an attempt that is never made.
#[tokio::test]
async fn what_waits_for_its_next_attempt_is_given_back_at_once() {
    let outside = Outside::default();
    let saga = Saga::named("asking").input::<u32>().step::<charge>().step::<ask_carrier>().build().unwrap();
    let runtime = runtime(&saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    outside.arrived.notified().await;
    while runtime.status("order").await.unwrap().unwrap().steps[1].attempts == 0 {
        tokio::task::yield_now().await;
    }
    let desk = SagaAdmin::new(Arc::clone(runtime.store())).saga(&saga);
    assert_eq!(desk.control("order").cancel(REASON).await.unwrap(), ControlOutcome::Applied, "as from another process");
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome}");
    assert_eq!(outside.calls().len(), 2, "{:?}", outside.calls());
    assert_eq!(runtime.statistics().failures, 1, "no further attempt was made");
    runtime.shutdown().await;
}

#[tokio::test]
async fn behind_the_pivot_and_after_the_end_nothing_is_cancelled() {
    let outside = Outside::default();
    let saga = Saga::named("shipping").input::<u32>().step::<charge>().step::<ship>().pivot().step::<thank>();
    let saga = saga.build().unwrap();
    let runtime = runtime(&saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    outside.arrived.notified().await;
    let refused = runtime.cancel("order", REASON).await.unwrap_err().to_string();
    let expected = "the saga `order` was not changed: its pivot `ship` is under way or done, and from there the saga only goes forward";
    assert_eq!(refused, expected);
    outside.go_on.notify_one();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(runtime.cancel("order", REASON).await.unwrap(), ControlOutcome::Ended(Status::Completed));
    assert_eq!(outside.calls(), ["charge", "ship", "thank"]);
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_stuck_saga_turns_round_and_waits_for_its_person() {
    let outside = Outside::default();
    let saga = Saga::named("weighing").input::<u32>().step::<charge>().step::<weigh>().build().unwrap();
    let runtime = runtime(&saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    let revision = until_stuck(&runtime).await;
    let operator = runtime.admin().control("order").at_revision(revision);
    assert_eq!(operator.cancel(REASON).await.unwrap(), ControlOutcome::Applied);
    let moved = operator.cancel(REASON).await.unwrap_err();
    assert!(matches!(moved, RuntimeError::Moved { .. }), "{moved}");
    let revision = until_stuck(&runtime).await;
    let operator = runtime.admin().control("order").at_revision(revision);
    assert_eq!(operator.cancel(REASON).await.unwrap(), ControlOutcome::Already);
    operator.skip("it was never weighed").await.unwrap();
    let outcome = running.closed().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome}");
    assert_eq!(outside.calls().len(), 2, "{:?}", outside.calls());
    runtime.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_cancelled_says_why() {
    let (saga, outside) = (shipping(), Outside::default());
    let runtime = runtime(&saga, &outside).await;
    assert!(matches!(runtime.cancel("nobody", REASON).await, Err(RuntimeError::NoSaga(_))));
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    outside.arrived.notified().await;
    let refused = runtime.cancel("order", " ").await.unwrap_err().to_string();
    assert_eq!(refused, "the saga `order` was not changed: give a reason; it is kept with the action");
    let stranger = SagaAdmin::<MemoryStore>::new(Arc::clone(runtime.store()));
    assert!(matches!(stranger.control("order").cancel(REASON).await, Err(RuntimeError::UnknownDefinition { .. })));
    outside.go_on.notify_one();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    runtime.shutdown().await;
}

/// A saga that begins later is ended by a cancel without any call, also where it would have begun with its pivot.
#[tokio::test]
async fn what_begins_later_and_is_cancelled_calls_nobody() {
    let outside = Outside::default();
    let saga = Saga::named("thanks").input::<u32>().step::<thank>().build().unwrap();
    let runtime = runtime(&saga, &outside).await;
    let hour = std::time::Duration::from_hours(1);
    let running = runtime.start(&saga, "order", 1).after(hour).await.unwrap();
    assert!(!running.already_started());
    assert!(runtime.start(&saga, "order", 1).await.unwrap().already_started(), "it is the same saga (G6)");
    let due = runtime.status("order").await.unwrap().unwrap();
    assert!(due.steps[0].due_at.unwrap().0 - due.summary.started_at.0 >= 3_600_000_000);
    let desk = SagaAdmin::new(Arc::clone(runtime.store())).saga(&saga);
    assert_eq!(desk.control("order").cancel(REASON).await.unwrap(), ControlOutcome::Applied);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome}");
    assert_eq!(outside.calls(), [""; 0]);
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_begins_later_waits_for_its_time() {
    let outside = Outside::default();
    let saga = Saga::named("thanks").input::<u32>().step::<thank>().build().unwrap();
    // The clock of the store is that of the test.
    let store = MemoryStore::with_environment(Arc::new(TokioEnvironment::current().unwrap()));
    let runtime = Runtime::builder(store).saga(&saga).state(outside.clone()).start().await.unwrap();
    let before = tokio::time::Instant::now();
    let hour = std::time::Duration::from_hours(1);
    let running = runtime.start(&saga, "order", 1).after(hour).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert!(before.elapsed() >= hour);
    assert_eq!(outside.calls(), ["thank"]);
    runtime.shutdown().await;
}
