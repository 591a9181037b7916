//! Messages from outside for sagas that wait for them, on a clock that the test owns.

use std::sync::Arc;
use std::time::Duration;

use saga_core::engine::{CompensationCause, ControlOutcome, RuntimeBuilder, RuntimeError, SagaAdmin, SignalOutcome};
use saga_core::env::TokioEnvironment;
use saga_core::memory::MemoryStore;
use saga_core::store::{HistoryKind, Sagas as _, Work as _};
use saga_core::{Outcome, Runtime, Saga, Signal, Signaled, StepError, Wait, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Approval {
    by: String,
}

impl Signal for Approval {
    const NAME: &'static str = "approval";
}

#[derive(Debug, Serialize, Deserialize)]
struct Payment;

impl Signal for Payment {
    const NAME: &'static str = "payment";
}

fn by(name: &str) -> Approval {
    Approval { by: name.to_owned() }
}

#[saga_step(compensate = release)]
async fn reserve(order: u32) -> Result<u32, StepError> {
    Ok(order)
}

#[saga_compensation]
async fn release(_order: u32, _reserved: Option<u32>) -> Result<(), StepError> {
    Ok(())
}

#[saga_step]
async fn ship(_order: u32, Signaled(approval): Signaled<Approval>) -> Result<String, StepError> {
    if approval.by == "nobody" { Err(StepError::reject("nobody approved it")) } else { Ok(approval.by) }
}

#[saga_step(no_compensation)]
async fn pack(approved_by: String) -> Result<String, StepError> {
    Ok(format!("packed for {approved_by}"))
}

#[saga_step(no_compensation)]
async fn refuse(_order: u32) -> Result<(), StepError> {
    Err(StepError::reject("no"))
}

fn purchase() -> Saga<MemoryStore, u32> {
    let saga = Saga::named("purchase").input::<u32>().step::<reserve>();
    saga.wait_for::<Approval>(Wait::within(MINUTE).or(|_: &u32| by("nobody"))).step::<ship>().build().unwrap()
}

fn store() -> MemoryStore {
    MemoryStore::with_environment(Arc::new(TokioEnvironment::current().unwrap()))
}

async fn runtime(store: &MemoryStore, sagas: &[Saga<MemoryStore, u32>]) -> Runtime<MemoryStore> {
    let builder = Runtime::builder(store.clone()).settings(|set| set.poll_interval = SECOND);
    sagas.iter().fold(builder, RuntimeBuilder::saga).start().await.unwrap()
}

async fn until_it_waits(runtime: &Runtime<MemoryStore>, key: &str, step: usize) {
    while runtime.status(key).await.unwrap().unwrap().steps[step].due_at.is_none() {
        tokio::task::yield_now().await;
    }
}

async fn nothing_is_left(store: &MemoryStore) {
    assert_eq!(store.backlog().await.unwrap().0, 0, "rows that wait");
    assert_eq!(store.orphaned(9).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_saga_goes_on_with_the_first_signal_and_with_no_other() {
    let store = store();
    let runtime = runtime(&store, &[purchase()]).await;
    let running = runtime.start(&purchase(), "order", 1).await.unwrap();
    until_it_waits(&runtime, "order", 1).await;
    let began = Instant::now();
    assert_eq!(runtime.signal("order", "a", &by("Ada")).await.unwrap(), SignalOutcome::Delivered);
    assert_eq!(runtime.signal("order", "a", &by("Ada")).await.unwrap(), SignalOutcome::Duplicate);
    assert_eq!(runtime.signal("order", "b", &by("nobody")).await.unwrap(), SignalOutcome::TooLate);
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert!(began.elapsed() < SECOND, "nobody waits for the limit");
    assert_eq!(
        runtime.signal("order", "a", &by("Ada")).await.unwrap(),
        SignalOutcome::Duplicate,
        "also when all is over"
    );
    assert_eq!(runtime.signal("order", "b", &by("Ada")).await.unwrap(), SignalOutcome::TooLate);
    let status = runtime.status("order").await.unwrap().unwrap();
    assert_eq!(status.steps[1].signal.as_deref(), Some("a"));
    let lines = status.history.iter().filter(|line| line.kind == HistoryKind::Signal);
    assert_eq!(lines.count(), 1, "{:?}", status.history);
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// What arrives before its turn is kept, also when the saga begins later, and when another process goes on with it.
#[tokio::test(start_paused = true)]
async fn g11_a_signal_that_comes_early_is_kept() {
    let store = store();
    let first = runtime(&store, &[purchase()]).await;
    first.start(&purchase(), "order", 1).after(MINUTE).await.unwrap();
    assert_eq!(first.signal("order", "a", &by("Ada")).await.unwrap(), SignalOutcome::Buffered);
    assert_eq!(first.signal("order", "a", &by("Ada")).await.unwrap(), SignalOutcome::Duplicate);
    assert_eq!(first.signal("order", "b", &by("Bob")).await.unwrap(), SignalOutcome::TooLate, "the first one counts");
    first.shutdown().await;
    let second = runtime(&store, &[purchase()]).await;
    let began = Instant::now();
    let outcome = second.attach("order").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert!(began.elapsed() < MINUTE + 5 * SECOND, "it did not wait again: {:?}", began.elapsed());
    second.shutdown().await;
    nothing_is_left(&store).await;
}

/// A saga that begins later does not begin for a message, also where it begins with waiting for it.
#[tokio::test(start_paused = true)]
async fn a_signal_begins_no_saga_before_its_time() {
    let store = store();
    let begins = Saga::named("begins").input::<u32>();
    let begins = begins
        .wait_for::<Approval>(Wait::within_from(|order: &u32| *order * SECOND).or(|_: &u32| by("nobody")))
        .step::<ship>();
    let begins = begins.build().unwrap();
    let runtime = runtime(&store, std::slice::from_ref(&begins)).await;
    let began = Instant::now();
    let running = runtime.start(&begins, "order", 40).after(MINUTE).await.unwrap();
    assert_eq!(runtime.signal("order", "a", &by("Ada")).await.unwrap(), SignalOutcome::Buffered);
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert!(began.elapsed() >= MINUTE && began.elapsed() < MINUTE + 5 * SECOND, "{:?}", began.elapsed());
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// The limit of a wait may change under one version, while sagas wait.
#[tokio::test(start_paused = true)]
async fn a_shorter_limit_holds_up_no_signal() {
    let patient = |wait: Wait<u32, Approval>| {
        let saga = Saga::named("patient").input::<u32>();
        saga.wait_for::<Approval>(wait).step::<ship>().build().unwrap()
    };
    let store = store();
    let before = patient(Wait::without_limit());
    let first = runtime(&store, std::slice::from_ref(&before)).await;
    first.start(&before, "order", 1).await.unwrap();
    first.shutdown().await;
    let after = patient(Wait::within(MINUTE).or(|_: &u32| by("nobody")));
    let second = runtime(&store, &[after]).await;
    let began = Instant::now();
    assert_eq!(second.signal("order", "a", &by("Ada")).await.unwrap(), SignalOutcome::Delivered);
    let outcome = second.attach("order").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert!(began.elapsed() < 5 * SECOND, "{:?}", began.elapsed());
    second.shutdown().await;
    nothing_is_left(&store).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_signal_the_limit_decides() {
    let store = store();
    let strict =
        Saga::named("strict").input::<u32>().step::<reserve>().wait_for::<Approval>(Wait::within(MINUTE).or_reject());
    let strict = strict.step::<ship>().build().unwrap();
    let runtime = runtime(&store, &[purchase(), strict.clone()]).await;
    let began = Instant::now();
    let by_default = runtime.start(&purchase(), "default", 1).await.unwrap();
    let rejected = runtime.start(&strict, "strict", 1).await.unwrap();
    let outcome = by_default.outcome().await.unwrap();
    assert_eq!(outcome.to_string(), "compensated, because `ship` failed: nobody approved it");
    let outcome = rejected.outcome().await.unwrap();
    assert_eq!(outcome.to_string(), "compensated, because `approval` failed: no `approval` arrived within 60s");
    assert!(began.elapsed() >= MINUTE && began.elapsed() < MINUTE + 5 * SECOND, "{:?}", began.elapsed());
    for key in ["default", "strict"] {
        assert_eq!(runtime.signal(key, "a", &by("Ada")).await.unwrap(), SignalOutcome::TooLate);
    }
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_is_refused() {
    let store = store();
    let runtime = runtime(&store, &[purchase()]).await;
    assert!(matches!(runtime.signal("order", "a", &by("Ada")).await, Err(RuntimeError::NoSaga(_))));
    runtime.start(&purchase(), "order", 1).await.unwrap();
    let refused = runtime.signal("order", "a", &Payment).await.unwrap_err().to_string();
    assert_eq!(refused, "the saga `order` was not changed: it has no step that waits for `payment`");
    let refused = runtime.signal("order", "", &by("Ada")).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "the saga `order` was not changed: a signal has an id of 1 to 200 bytes, the same when it is sent again"
    );
    let stranger = SagaAdmin::<MemoryStore>::new(Arc::clone(runtime.store()));
    let refused = stranger.control("order").signal("a", &by("Ada")).await;
    assert!(matches!(refused, Err(RuntimeError::UnknownDefinition { .. })), "{refused:?}");
    runtime.shutdown().await;
}

/// A webhook needs no runtime, only the store.
#[tokio::test(start_paused = true)]
async fn a_signal_needs_no_runtime() {
    let store = store();
    let runtime = runtime(&store, &[purchase()]).await;
    let running = runtime.start(&purchase(), "order", 1).await.unwrap();
    until_it_waits(&runtime, "order", 1).await;
    let desk = SagaAdmin::new(store.clone()).saga(&purchase());
    assert_eq!(desk.control("order").signal("a", &by("Ada")).await.unwrap(), SignalOutcome::Delivered);
    assert_eq!(desk.control("order").signal("a", &by("Ada")).await.unwrap(), SignalOutcome::Duplicate);
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// Nobody waits for a message that decides nothing any more.
#[tokio::test(start_paused = true)]
async fn g5_a_wait_ends_when_the_saga_turns_round() {
    let store = store();
    let group = Saga::named("group").input::<u32>().step::<reserve>();
    let group = group.parallel(|group| {
        let waits = |branch: saga_core::saga::Branch<MemoryStore, u32>| {
            branch
                .wait_for::<Approval>(Wait::without_limit())
                .step_from::<pack, _>(|_: &u32, Signaled(approval): Signaled<Approval>| approval.by)
        };
        group.branch(waits).branch(|branch| branch.sleep("a-while", SECOND).step::<refuse>())
    });
    let group = group.build().unwrap();
    let deadline = Saga::named("deadline").input::<u32>().deadline(MINUTE).step::<reserve>();
    let deadline = deadline.wait_for::<Approval>(Wait::without_limit()).step::<ship>().build().unwrap();
    let runtime = runtime(&store, &[group.clone(), deadline.clone(), purchase()]).await;
    let began = Instant::now();
    let failed = runtime.start(&group, "group", 1).await.unwrap();
    assert_eq!(failed.outcome().await.unwrap().to_string(), "compensated, because `refuse` failed: no");
    let overdue = runtime.start(&deadline, "deadline", 1).await.unwrap();
    assert!(matches!(
        overdue.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }
    ));
    let cancelled = runtime.start(&purchase(), "cancelled", 1).await.unwrap();
    until_it_waits(&runtime, "cancelled", 1).await;
    runtime.cancel("cancelled", "no longer wanted").await.unwrap();
    assert!(matches!(
        cancelled.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::Cancelled, .. }
    ));
    assert!(began.elapsed() < 2 * MINUTE, "{:?}", began.elapsed());
    for key in ["group", "deadline", "cancelled"] {
        assert_eq!(runtime.signal(key, "a", &by("Ada")).await.unwrap(), SignalOutcome::TooLate, "{key}");
    }
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

#[tokio::test(start_paused = true)]
async fn branches_wait_beside_each_other() {
    let store = store();
    let saga = Saga::named("both").input::<u32>().parallel(|group| {
        group
            .branch(|branch| {
                branch
                    .wait_for::<Approval>(Wait::within(MINUTE).or_reject())
                    .step_from::<pack, _>(|_: &u32, Signaled(approval): Signaled<Approval>| approval.by)
            })
            .branch(|branch| branch.wait_for::<Payment>(Wait::within(MINUTE).or_reject()))
    });
    let saga = saga.step::<ship>().build().unwrap();
    let runtime = runtime(&store, std::slice::from_ref(&saga)).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    assert_eq!(runtime.signal("order", "p", &Payment).await.unwrap(), SignalOutcome::Delivered);
    assert_eq!(runtime.signal("order", "a", &by("Ada")).await.unwrap(), SignalOutcome::Delivered);
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// Many send at once, and each again: one counts, and everybody is told what is so.
#[tokio::test(start_paused = true)]
async fn of_many_signals_at_once_one_counts() {
    let store = store();
    let runtime = runtime(&store, &[purchase()]).await;
    for round in 0..20 {
        let key = format!("order-{round}");
        let running = runtime.start(&purchase(), &key, 1).await.unwrap();
        let send = |id: usize| {
            let (runtime, key) = (runtime.clone(), key.clone());
            tokio::spawn(async move { runtime.signal(&key, id.to_string(), &by(&id.to_string())).await.unwrap() })
        };
        let sending: Vec<_> = (0..8).map(|nth| send(nth / 2)).collect();
        let mut receipts = Vec::new();
        for sent in sending {
            receipts.push(sent.await.unwrap());
        }
        let count = |wanted: &[SignalOutcome]| receipts.iter().filter(|receipt| wanted.contains(receipt)).count();
        assert_eq!(count(&[SignalOutcome::Delivered, SignalOutcome::Buffered]), 1, "{receipts:?}");
        assert_eq!(count(&[SignalOutcome::Duplicate]), 1, "{receipts:?}");
        assert_eq!(count(&[SignalOutcome::TooLate]), 6, "{receipts:?}");
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    }
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// An older version of the same signal.
#[derive(Debug, Serialize, Deserialize)]
struct OldApproval {
    who: String,
}

impl Signal for OldApproval {
    const NAME: &'static str = "approval";
}

/// G8: it decides nothing, so that the right one still does.
#[tokio::test(start_paused = true)]
async fn g8_a_signal_of_another_form_is_refused_and_the_right_one_counts() {
    let store = store();
    let runtime = runtime(&store, &[purchase()]).await;
    let running = runtime.start(&purchase(), "order", 1).await.unwrap();
    until_it_waits(&runtime, "order", 1).await;
    let old = OldApproval { who: "Ada".to_owned() };
    let revision = runtime.status("order").await.unwrap().unwrap().revision;
    for desk in [runtime.admin(), SagaAdmin::new(store.clone()).saga(&purchase())] {
        let error = desk.control("order").signal("a", &old).await.unwrap_err();
        assert!(matches!(error, RuntimeError::SignalForm { .. }), "{error:?}");
        let said = error.to_string();
        assert!(
            said.contains("its step `approval` waits for one of another form: `sagas::signals::Approval`: missing"),
            "{said}"
        );
    }
    assert_eq!(runtime.status("order").await.unwrap().unwrap().revision, revision, "nothing was changed");
    assert_eq!(runtime.signal("order", "a", &by("Ada")).await.unwrap(), SignalOutcome::Delivered);
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(
        runtime.signal("order", "b", &old).await.unwrap(),
        SignalOutcome::TooLate,
        "it would have decided nothing"
    );
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// The signal is kept, and the saga has not begun for that.
#[tokio::test(start_paused = true)]
async fn g5_an_early_signal_leaves_a_saga_that_begins_later_free_to_be_cancelled() {
    let store = store();
    let saga = Saga::named("purchase").input::<u32>().step::<pay>().pivot().wait_for::<Approval>(Wait::without_limit());
    let saga = saga.step::<ship>().build().unwrap();
    let runtime = runtime(&store, std::slice::from_ref(&saga)).await;
    let running = runtime.start(&saga, "order", 1).after(10 * MINUTE).await.unwrap();
    assert_eq!(runtime.signal("order", "a", &by("Ada")).await.unwrap(), SignalOutcome::Buffered);
    assert_eq!(runtime.cancel("order", "no longer wanted").await.unwrap(), ControlOutcome::Applied);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome}");
    tokio::time::sleep(20 * MINUTE).await;
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

#[saga_step(no_compensation)]
async fn pay(_order: u32) -> Result<(), StepError> {
    panic!("a saga that was cancelled before it began pays nothing")
}
