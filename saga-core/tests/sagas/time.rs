//! Deadlines, sleeps and limits for all attempts of a step, on a clock that the test owns.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use saga_core::StepPhase;
use saga_core::engine::CompensationCause;
use saga_core::env::TokioEnvironment;
use saga_core::memory::MemoryStore;
use saga_core::saga::Branch;
use saga_core::store::{HistoryKind, Sagas as _, Status, Work as _};
use saga_core::{Outcome, Output, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use tokio::sync::Notify;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

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
async fn charge(_order: u32, State(outside): State<Outside>) -> Result<Duration, StepError> {
    outside.note("charge");
    Ok(2 * MINUTE)
}

#[saga_compensation]
async fn refund(
    ctx: &StepContext,
    _order: u32,
    _pause: Option<Duration>,
    State(outside): State<Outside>,
) -> Result<(), StepError> {
    outside.note(&format!("refund, since {}", ctx.failure().unwrap().message()));
    Ok(())
}

#[saga_step(no_compensation, retry(attempts = 9, base = "2h", cap = "2h"), on_exhausted = "compensate")]
async fn ask_carrier(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.note("ask");
    Err(StepError::not_sent("nobody answers"))
}

#[saga_step(
    no_compensation,
    retry(attempts = 1_000, base = "2s", cap = "2s"),
    give_up_after = "2m",
    on_exhausted = "compensate"
)]
async fn ask_for_a_while(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.note("ask");
    Err(StepError::not_sent("nobody answers"))
}

/// It is held up until somebody lets it go on.
#[saga_step(compensate = call_back, timeout = "9h")]
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

#[saga_step(no_compensation)]
async fn refuse(_order: u32) -> Result<(), StepError> {
    Err(StepError::reject("no"))
}

#[saga_step]
async fn thank(_order: u32, State(outside): State<Outside>) -> Result<(), StepError> {
    outside.note("thank");
    Ok(())
}

fn store() -> MemoryStore {
    MemoryStore::with_environment(Arc::new(TokioEnvironment::current().unwrap()))
}

async fn runtime(store: &MemoryStore, saga: &Saga<MemoryStore, u32>, outside: &Outside) -> Runtime<MemoryStore> {
    Runtime::builder(store.clone())
        .settings(|set| set.poll_interval = SECOND)
        .saga(saga)
        .state(outside.clone())
        .start()
        .await
        .unwrap()
}

/// Nothing waits in the store, and no saga is forgotten.
async fn nothing_is_left(store: &MemoryStore) {
    assert_eq!(store.backlog().await.unwrap().0, 0, "rows that wait");
    assert_eq!(store.orphaned(9).await.unwrap(), []);
}

fn asking() -> Saga<MemoryStore, u32> {
    let saga = Saga::named("asking").input::<u32>().deadline(30 * SECOND).step::<charge>().step::<ask_carrier>();
    saga.step::<thank>().build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_saga_that_is_not_done_in_time_turns_round() {
    let (saga, outside, store) = (asking(), Outside::default(), store());
    let runtime = runtime(&store, &saga, &outside).await;
    let began = Instant::now();
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    let due = runtime.status("order").await.unwrap().unwrap();
    assert_eq!(due.deadline.unwrap().0 - due.summary.started_at.0, 30_000_000);
    let outcome = running.outcome().await.unwrap();
    assert!(began.elapsed() >= 30 * SECOND && began.elapsed() < 31 * SECOND, "{:?}", began.elapsed());
    assert!(matches!(&outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    assert_eq!(outcome.to_string(), "compensated, because its deadline passed: it was to be done within 30s");
    let mut calls = outside.calls();
    calls.dedup();
    assert_eq!(calls, ["charge", "ask", "refund, since it was to be done within 30s"]);
    let ended = runtime.status("order").await.unwrap().unwrap();
    assert_eq!(ended.deadline, None);
    assert!(ended.history.iter().any(|entry| entry.kind == HistoryKind::Deadline), "{:?}", ended.history);
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// The timer of a saga that has ended is gone with it.
#[tokio::test(start_paused = true)]
async fn a_saga_that_is_done_in_time_leaves_no_deadline() {
    let (outside, store) = (Outside::default(), store());
    let saga =
        Saga::named("quick").input::<u32>().deadline(20 * SECOND).step::<charge>().step::<thank>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    let mut transaction = store.transaction();
    let started = runtime.start(&saga, "in", 1).in_tx(transaction.conn()).await.unwrap();
    transaction.commit().unwrap();
    started.committed();
    let many = runtime.start_many(&saga, [("a", 1), ("b", 2)]).await;
    for running in many.into_iter().map(Result::unwrap).chain([running, runtime.attach("in").await.unwrap()]) {
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    }
    nothing_is_left(&store).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(runtime.admin().query().count().await.unwrap()[&Status::Completed], 4);
    assert_eq!(outside.calls().len(), 8, "{:?}", outside.calls());
    runtime.shutdown().await;
}

/// A start in the caller's transaction can have a delay and a deadline, as any other start.
#[tokio::test(start_paused = true)]
async fn a_start_in_a_transaction_begins_later_and_has_a_deadline() {
    let (outside, store, began) = (Outside::default(), store(), Instant::now());
    let saga = Saga::named("shipping").input::<u32>().step::<charge>().step::<ship>().step::<thank>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let mut transaction = store.transaction();
    let start = runtime.start(&saga, "order", 1).after(5 * MINUTE).within(20 * SECOND);
    let started = start.in_tx(transaction.conn()).await.unwrap();
    transaction.commit().unwrap();
    started.committed();
    outside.arrived.notified().await;
    assert!(began.elapsed() >= 5 * MINUTE, "{:?}", began.elapsed());
    tokio::time::sleep(MINUTE).await;
    outside.go_on.notify_one();
    let outcome = runtime.attach("order").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

#[tokio::test(start_paused = true)]
async fn from_the_pivot_on_a_deadline_says_nothing() {
    let (outside, store) = (Outside::default(), store());
    let saga = Saga::named("shipping").input::<u32>().deadline(20 * SECOND).step::<charge>().step::<ship>().pivot();
    let saga = saga.step::<thank>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    outside.arrived.notified().await;
    assert_eq!(runtime.status("order").await.unwrap().unwrap().deadline, None);
    tokio::time::sleep(MINUTE).await;
    outside.go_on.notify_one();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(outside.calls(), ["charge", "ship", "thank"]);
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// What is in flight when the deadline passes comes to its end, and is undone.
#[tokio::test(start_paused = true)]
async fn what_is_in_flight_at_the_deadline_is_undone() {
    let (outside, store) = (Outside::default(), store());
    let saga = Saga::named("shipping").input::<u32>().step::<charge>().step::<ship>().step::<thank>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let running = runtime.start(&saga, "order", 1).within(20 * SECOND).await.unwrap();
    outside.arrived.notified().await;
    while runtime.status("order").await.unwrap().unwrap().summary.status == Status::Running {
        tokio::time::sleep(SECOND).await;
    }
    outside.go_on.notify_one();
    let outcome = running.outcome().await.unwrap();
    assert!(
        matches!(&outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, failed_step, .. } if failed_step == "ship")
    );
    assert_eq!(outside.calls(), ["charge", "ship", "call back", "refund, since it was to be done within 20s"]);
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_counted_from_the_beginning() {
    let (outside, store) = (Outside::default(), store());
    let runtime = runtime(&store, &asking(), &outside).await;
    let began = Instant::now();
    let running = runtime.start(&asking(), "order", 1).after(5 * MINUTE).await.unwrap();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }
    ));
    assert!(began.elapsed() >= 5 * MINUTE + 30 * SECOND, "{:?}", began.elapsed());
    runtime.start(&asking(), "never", 1).after(5 * MINUTE).await.unwrap();
    runtime.cancel("never", "no longer wanted").await.unwrap();
    assert_eq!(runtime.admin().query().count().await.unwrap()[&Status::Compensated], 2);
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// A deadline and a sleep are rows: they outlive the process that wrote them.
#[tokio::test(start_paused = true)]
async fn g11_a_sleep_and_a_deadline_outlive_their_process() {
    let (outside, store) = (Outside::default(), store());
    let sleeping = || {
        let saga = Saga::named("sleeping").input::<u32>().deadline(9 * MINUTE).step::<charge>();
        saga.sleep_from("cool-off", |_: &u32, Output(pause): Output<charge>| pause).step::<thank>().build().unwrap()
    };
    let first = runtime(&store, &sleeping(), &outside).await;
    let began = Instant::now();
    first.start(&sleeping(), "order", 1).await.unwrap();
    while first.status("order").await.unwrap().unwrap().steps[1].due_at.is_none() {
        tokio::time::sleep(SECOND).await;
    }
    first.shutdown().await;
    drop(first);
    let second = runtime(&store, &sleeping(), &outside).await;
    let outcome = second.attach("order").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert!(began.elapsed() >= 2 * MINUTE && began.elapsed() < 2 * MINUTE + 10 * SECOND, "{:?}", began.elapsed());

    let first = runtime(&store, &asking(), &outside).await;
    first.start(&asking(), "late", 1).await.unwrap();
    first.shutdown().await;
    tokio::time::sleep(5 * MINUTE).await;
    let last = runtime(&store, &asking(), &outside).await;
    let outcome = last.attach("late").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    last.shutdown().await;
    second.shutdown().await;
    nothing_is_left(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_sleep_ends_at_its_moment_by_the_clock_of_the_store() {
    let (outside, store) = (Outside::default(), store());
    let began = Instant::now();
    let now = store.now().await.unwrap();
    let moment = SystemTime::UNIX_EPOCH + Duration::from_micros(now.0.unsigned_abs()) + 3 * MINUTE;
    let early: Result<Saga<MemoryStore, u32>, _> =
        Saga::named("early").input().sleep_until("past", |_: &u32, _: Output<charge>| SystemTime::UNIX_EPOCH).build();
    let problem = early.unwrap_err().to_string();
    assert!(problem.contains("`past` needs the output of `charge`, which does not run before it"), "{problem}");
    let saga = Saga::named("sleeping")
        .input::<u32>()
        .sleep_until("until-then", move |_: &u32| moment)
        .step::<charge>()
        .sleep_until("past", |_: &u32, _: Output<charge>| SystemTime::UNIX_EPOCH)
        .sleep_from("as-long", |order: &u32| *order * SECOND)
        .sleep("no-time", Duration::ZERO)
        .step::<thank>()
        .build()
        .unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let running = runtime.start(&saga, "order", 5).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    let took = began.elapsed();
    assert!(took >= 3 * MINUTE + 5 * SECOND && took < 3 * MINUTE + 9 * SECOND, "{took:?}");
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// Nobody waits for a branch that only sleeps.
#[tokio::test(start_paused = true)]
async fn g5_who_sleeps_is_woken_when_the_saga_turns_round() {
    let (outside, store) = (Outside::default(), store());
    let saga = Saga::named("sleeping")
        .input::<u32>()
        .step::<charge>()
        .parallel(|group| {
            group.branch(|branch| branch.sleep("cool-off", 9 * MINUTE).step::<ship>()).branch(Branch::step::<refuse>)
        })
        .build()
        .unwrap();
    let sequence = Saga::named("alone").input::<u32>().step::<charge>().sleep("cool-off", 9 * MINUTE).step::<thank>();
    let sequence = sequence.build().unwrap();
    let runtime =
        Runtime::builder(store.clone()).saga(&saga).saga(&sequence).state(outside.clone()).start().await.unwrap();
    let began = Instant::now();
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::StepFailed, .. }
    ));
    assert_eq!(outside.calls(), ["charge", "refund, since no"]);

    let running = runtime.start(&sequence, "alone", 1).await.unwrap();
    while runtime.status("alone").await.unwrap().unwrap().steps[1].due_at.is_none() {
        tokio::time::sleep(SECOND).await;
    }
    runtime.cancel("alone", "no longer wanted").await.unwrap();
    assert!(matches!(
        running.outcome().await.unwrap(),
        Outcome::Compensated { cause: CompensationCause::Cancelled, .. }
    ));
    assert!(began.elapsed() < MINUTE, "{:?}", began.elapsed());
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// A branch wakes while another one is on its way to fail: the failure is written down all the same.
#[tokio::test(start_paused = true)]
async fn a_failure_counts_also_where_a_branch_woke_meanwhile() {
    #[saga_step(no_compensation)]
    async fn decline(_order: u32, State(woken): State<Arc<Notify>>) -> Result<(), StepError> {
        woken.notified().await;
        Err(StepError::reject("no"))
    }
    let (store, woken) = (store(), Arc::new(Notify::new()));
    let group = Saga::named("woken")
        .input::<u32>()
        .parallel(|group| group.branch(|branch| branch.sleep("a-moment", SECOND)).branch(Branch::step::<decline>));
    let saga = group.build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&saga).state(Arc::clone(&woken)).start().await.unwrap();
    let began = Instant::now();
    let running = runtime.start(&saga, "order", 1).await.unwrap();
    while runtime.status("order").await.unwrap().unwrap().steps[0].phase != StepPhase::Done {
        tokio::time::sleep(SECOND).await;
    }
    woken.notify_one();
    let outcome = running.outcome().await.unwrap();
    assert_eq!(outcome.to_string(), "compensated, because `decline` failed: no");
    assert!(began.elapsed() < 5 * SECOND, "{:?}", began.elapsed());
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}

/// However many attempts are left, none begins when their time together is over.
#[tokio::test(start_paused = true)]
async fn all_attempts_together_have_their_time() {
    let (outside, store) = (Outside::default(), store());
    let saga = Saga::named("asking").input::<u32>().step::<charge>().step::<ask_for_a_while>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let began = Instant::now();
    let outcome = runtime.start(&saga, "order", 1).await.unwrap().outcome().await.unwrap();
    let Outcome::Compensated { failed_step, reason, .. } = &outcome else { panic!("{outcome}") };
    assert_eq!(failed_step, "ask-for-a-while");
    assert!(reason.message().ends_with("(given up: all attempts together have 120s)"), "{reason}");
    assert!(began.elapsed() <= 2 * MINUTE + 2 * SECOND, "{:?}", began.elapsed());
    assert!(began.elapsed() > MINUTE, "{:?}", began.elapsed());
    runtime.shutdown().await;
}

/// It has the time that whoever started it gave it, from its own beginning, and so has one that is restarted in its turn.
#[tokio::test(start_paused = true)]
async fn a_restarted_saga_has_the_deadline_of_the_one_before() {
    let (outside, store) = (Outside::default(), store());
    let saga = Saga::named("asking").input::<u32>().step::<charge>().step::<ask_carrier>().build().unwrap();
    let runtime = runtime(&store, &saga, &outside).await;
    let first = runtime.start(&saga, "order", 1).within(10 * SECOND).await.unwrap();
    let outcome = first.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    for (key, new_key) in [("order", "order-2"), ("order-2", "order-3")] {
        let began = Instant::now();
        runtime.admin().control(key).restart("charge", new_key, "once more").await.unwrap();
        let outcome = runtime.attach(new_key).await.unwrap().outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
        assert!((10 * SECOND..20 * SECOND).contains(&began.elapsed()), "{:?}", began.elapsed());
    }
    runtime.shutdown().await;
    nothing_is_left(&store).await;
}
