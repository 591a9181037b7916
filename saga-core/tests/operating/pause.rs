//! A saga that is paused: what is in flight ends, nothing new begins, and nothing is lost (G5, G11).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::StepPhase;
use saga_core::engine::{CompensationCause, ControlOutcome, RuntimeError, SagaAdmin, SagaStatus};
use saga_core::env::TokioEnvironment;
use saga_core::memory::MemoryStore;
use saga_core::store::{SagaFilter, Sagas, Status, Work};
use saga_core::{Outcome, Runtime, Saga, State, StepError, saga_compensation, saga_step};
use tokio::sync::Notify;

/// What was called, and what holds a call up.
#[derive(Clone, Default)]
struct Outside {
    calls: Arc<Mutex<Vec<&'static str>>>,
    arrived: Arc<Notify>,
    go_on: Arc<Notify>,
    refusals: Arc<AtomicU32>,
}

impl Outside {
    fn note(&self, what: &'static str) {
        self.calls.lock().unwrap().push(what);
    }

    fn calls(&self) -> Vec<&'static str> {
        self.calls.lock().unwrap().clone()
    }
}

/// The call is held up until the test lets it go on.
#[saga_step(compensate = unpack)]
async fn pack(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.arrived.notify_one();
    outside.go_on.notified().await;
    outside.note("pack");
    Ok(())
}

#[saga_compensation]
async fn unpack(_order: u32, _packed: Option<()>, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.note("unpack");
    Ok(())
}

/// It succeeds when it was refused as often as is wanted; ten seconds lie between two attempts.
#[saga_step(compensate = unpack, retry(attempts = 9, base = "10s", cap = "10s"), on_exhausted = "compensate")]
async fn label(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.note("label");
    let left = outside.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    left.map_or(Ok(()), |_| Err(StepError::not_sent("the printer is out of paper")))
}

#[saga_step]
async fn ship(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.note("ship");
    Ok(())
}

const WHY: &str = "the address is wrong";

fn packing() -> Saga<MemoryStore, u32> {
    Saga::named("packing").input::<u32>().step::<pack>().step::<ship>().build().unwrap()
}

fn labelling() -> Saga<MemoryStore, u32> {
    Saga::named("labelling").input::<u32>().step::<label>().step::<ship>().build().unwrap()
}

/// The clock of the store is that of the test, which jumps.
async fn runtime(saga: &Saga<MemoryStore, u32>, outside: &Outside) -> Runtime<MemoryStore> {
    let store = MemoryStore::with_environment(Arc::new(TokioEnvironment::current().unwrap()));
    Runtime::builder(store).saga(saga).state(outside.clone()).start().await.unwrap()
}

async fn seen(runtime: &Runtime<MemoryStore>) -> SagaStatus {
    runtime.status("order").await.unwrap().unwrap()
}

async fn until(runtime: &Runtime<MemoryStore>, holds: impl Fn(&SagaStatus) -> bool) {
    while !holds(&seen(runtime).await) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn g5_what_is_in_flight_ends_and_nothing_new_begins() {
    let (saga, outside) = (packing(), Outside::default());
    let runtime = runtime(&saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    outside.arrived.notified().await;
    let desk = runtime.admin().actor("ann");
    assert_eq!(desk.control("order").pause(WHY).await.unwrap(), ControlOutcome::Applied);
    assert_eq!(desk.control("order").pause(WHY).await.unwrap(), ControlOutcome::Already);
    outside.go_on.notify_one();
    until(&runtime, |status| status.steps[0].phase == StepPhase::Done).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(outside.calls(), ["pack"], "an hour later nothing has begun");

    let status = seen(&runtime).await;
    assert_eq!(status.summary.status, Status::Paused);
    let paused = status.summary.paused.unwrap();
    assert_eq!((paused.actor.as_deref(), &*paused.reason), (Some("ann"), WHY));
    assert_eq!(paused.since, Some(status.history[0].at));
    assert_eq!(status.history[0].detail, "pause by ann: the address is wrong");
    let filter = SagaFilter { status: Some(Status::Paused), ..SagaFilter::default() };
    assert_eq!(runtime.admin().query().list(filter).await.unwrap().len(), 1);
    assert_eq!(runtime.admin().query().count().await.unwrap()[&Status::Paused], 1);
    assert_eq!(runtime.store().orphaned(9).await.unwrap(), [], "somebody is to resume it (G11)");

    assert_eq!(desk.control("order").resume("it was corrected").await.unwrap(), ControlOutcome::Applied);
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(outside.calls(), ["pack", "ship"]);
    let ended = Status::Completed;
    assert_eq!(desk.control("order").resume("again").await.unwrap(), ControlOutcome::Ended(ended));
    assert_eq!(desk.control("order").pause("too late").await.unwrap(), ControlOutcome::Ended(ended));
    let acts: Vec<_> = seen(&runtime).await.history.into_iter().filter_map(|entry| entry.audit).collect();
    assert_eq!(acts.len(), 2, "what changed nothing leaves no line: {acts:?}");
    runtime.shutdown().await;
}

/// What falls due is claimed once and then left alone; with the resumption it is due at once, and its attempts are counted on.
#[tokio::test(start_paused = true)]
async fn g11_a_further_attempt_waits_for_the_resumption() {
    let (saga, outside) = (labelling(), Outside::default());
    outside.refusals.store(3, Ordering::SeqCst);
    let runtime = runtime(&saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    until(&runtime, |status| status.steps[0].attempts == 1).await;
    runtime.admin().control("order").pause(WHY).await.unwrap();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let (before, attempts) = (seen(&runtime).await, runtime.statistics().failures);
    tokio::time::sleep(Duration::from_hours(10)).await;
    let after = seen(&runtime).await;
    assert_eq!((before.revision, attempts), (after.revision, runtime.statistics().failures), "nobody touches it");
    assert_eq!((outside.calls().len(), after.steps[0].attempts), (1, 1));
    assert!(after.steps[0].error.is_some(), "what is known of it is kept");

    // A desk without a runtime leaves it to those that work on the store.
    let desk = SagaAdmin::new(Arc::clone(runtime.store())).saga(&saga);
    let began = tokio::time::Instant::now();
    assert_eq!(desk.control("order").resume("paper is there").await.unwrap(), ControlOutcome::Applied);
    until(&runtime, |status| status.steps[0].attempts == 2).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(outside.calls(), ["label", "label", "label", "label", "ship"]);
    runtime.shutdown().await;
}

/// What is due later than the resumption is not hurried by it.
#[tokio::test(start_paused = true)]
async fn what_begins_later_begins_no_earlier() {
    let (saga, outside) = (labelling(), Outside::default());
    let runtime = runtime(&saga, &outside).await;
    let began = tokio::time::Instant::now();
    let (minute, hour) = (Duration::from_mins(1), Duration::from_hours(1));
    let running = runtime.start(&saga, "order", 1).after(hour).await.unwrap();
    runtime.admin().control("order").pause(WHY).await.unwrap();
    tokio::time::sleep(minute).await;
    runtime.admin().control("order").resume("it was corrected").await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert!(began.elapsed() >= hour);
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn it_can_be_cancelled_and_is_undone_when_it_is_resumed() {
    let (saga, outside) = (packing(), Outside::default());
    let runtime = runtime(&saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    outside.arrived.notified().await;
    runtime.admin().control("order").pause(WHY).await.unwrap();
    outside.go_on.notify_one();
    until(&runtime, |status| status.steps[0].phase == StepPhase::Done).await;
    assert_eq!(runtime.cancel("order", "not wanted").await.unwrap(), ControlOutcome::Applied);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((seen(&runtime).await.summary.status, outside.calls()), (Status::Paused, vec!["pack"]));
    assert_eq!(runtime.cancel("order", "not wanted").await.unwrap(), ControlOutcome::Already);
    runtime.admin().control("order").resume("now").await.unwrap();
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome}");
    assert_eq!(outside.calls(), ["pack", "unpack"]);
    runtime.shutdown().await;
}

/// It is given back although it is paused, and as nothing took effect there is nothing to wait for.
#[tokio::test(start_paused = true)]
async fn what_has_not_happened_needs_no_resumption_to_be_cancelled() {
    let (saga, outside) = (labelling(), Outside::default());
    outside.refusals.store(9, Ordering::SeqCst);
    let runtime = runtime(&saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    until(&runtime, |status| status.steps[0].attempts == 1).await;
    runtime.admin().control("order").pause(WHY).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    runtime.cancel("order", "not wanted").await.unwrap();
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome}");
    assert_eq!(outside.calls(), ["label"]);
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_says_why() {
    let (saga, outside) = (packing(), Outside::default());
    let runtime = runtime(&saga, &outside).await;
    for answer in [
        runtime.admin().control("nobody").pause(WHY).await.err(),
        runtime.admin().control("nobody").resume(WHY).await.err(),
    ] {
        assert!(matches!(answer, Some(RuntimeError::NoSaga(_))), "{answer:?}");
    }
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    outside.arrived.notified().await;
    let refused = runtime.admin().control("order").pause(" ").await.unwrap_err().to_string();
    assert_eq!(refused, "the saga `order` was not changed: give a reason; it is kept with the action");
    let refused = runtime.admin().actor("\n").control("order").pause(WHY).await.unwrap_err().to_string();
    assert!(refused.ends_with("a name that can be read; it is kept with the action"), "{refused}");
    let stranger = SagaAdmin::<MemoryStore>::new(Arc::clone(runtime.store()));
    assert!(matches!(stranger.control("order").pause(WHY).await, Err(RuntimeError::UnknownDefinition { .. })));

    // An operator who names the revision that was seen acts on that revision only.
    let operator = runtime.admin().actor("ann").control("order").at_revision(seen(&runtime).await.revision);
    assert_eq!(operator.resume(WHY).await.unwrap(), ControlOutcome::Already);
    assert_eq!(operator.pause(WHY).await.unwrap(), ControlOutcome::Applied);
    assert!(matches!(operator.pause(WHY).await, Err(RuntimeError::Moved { .. })));
    let operator = runtime.admin().control("order").at_revision(seen(&runtime).await.revision);
    assert_eq!(operator.pause(WHY).await.unwrap(), ControlOutcome::Already);
    assert_eq!(operator.resume("it was corrected").await.unwrap(), ControlOutcome::Applied);
    outside.go_on.notify_one();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    runtime.shutdown().await;
}

/// Behind its pivot nothing could be undone; whoever paused it has begun nothing of it.
#[tokio::test(start_paused = true)]
async fn g5_what_begins_later_is_cancelled_whether_or_not_it_was_paused() {
    let outside = Outside::default();
    let saga = Saga::named("shipping").input::<u32>().step::<ship>().build().unwrap();
    let runtime = runtime(&saga, &outside).await;
    let minute = Duration::from_mins(1);
    for key in ["resumed", "paused", "overdue"] {
        let running = runtime.start(&saga, key, 1).after(minute).await.unwrap();
        runtime.admin().control(key).pause(WHY).await.unwrap();
        match key {
            "resumed" => drop(runtime.admin().control(key).resume("it was corrected").await.unwrap()),
            "overdue" => tokio::time::sleep(2 * minute).await,
            _ => {}
        }
        assert_eq!(runtime.cancel(key, "not wanted").await.unwrap(), ControlOutcome::Applied, "{key}");
        let outcome = running.outcome().await.unwrap();
        assert!(
            matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }),
            "{key}: {outcome}"
        );
    }
    tokio::time::sleep(4 * minute).await;
    assert_eq!(outside.calls(), [""; 0]);
    assert_eq!(runtime.store().backlog().await.unwrap().0, 0, "rows that wait");
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn g5_what_is_called_while_the_saga_is_paused_has_begun() {
    let outside = Outside::default();
    let saga = Saga::named("packing").input::<u32>().step::<pack>().pivot().step::<ship>().build().unwrap();
    let runtime = runtime(&saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).after(Duration::from_secs(1)).await.unwrap();
    outside.arrived.notified().await;
    runtime.admin().control("order").pause(WHY).await.unwrap();
    let refused = runtime.cancel("order", "not wanted").await.unwrap_err().to_string();
    assert!(refused.contains("pivot"), "{refused}");
    outside.go_on.notify_one();
    until(&runtime, |status| status.steps[0].phase == StepPhase::Done).await;
    runtime.admin().control("order").resume("it was corrected").await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    runtime.shutdown().await;
}
