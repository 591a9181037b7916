//! Deadlines, sleeps, backoffs and time limits in virtual time, on every store: each moment is exact, and a day costs a few calls.

use std::time::Duration;

use saga_core::engine::{CompensationCause, SagaStatus, SignalOutcome, StepStatus};
use saga_core::saga::SagaBuilder;
use saga_core::store::{Status, StoreErrorKind, Timestamp, Work};
use saga_core::{Outcome, Runtime, Saga, Signal, Signaled, StepContext, StepError, StepPhase, Wait, saga_step};
use saga_postgres::{PostgresOptions, PostgresStore};
use saga_testkit::VirtualTime;
use saga_tests::{Books, Kept, on_every_clock};
use serde::{Deserialize, Serialize};

use crate::pieces::{bill, take_out};

const MINUTE: Duration = Duration::from_mins(1);
/// The shortest time that a store tells apart.
const MOMENT: Duration = Duration::from_micros(1);
const DAY: Duration = Duration::from_hours(24);

/// How many calls of the store a saga may cost, however long it waits.
const CALLS_MAX: u64 = 150;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Approval {
    by: String,
}

impl Signal for Approval {
    const NAME: &'static str = "approval";
}

#[saga_step(no_compensation)]
async fn note<S: Books>(
    tx: &mut S::Conn,
    _pieces: u32,
    Signaled(approval): Signaled<Approval>,
) -> Result<(), StepError> {
    S::add(tx, &approval.by, 1).await?;
    Ok(())
}

/// The gateway is away for the first two calls.
#[saga_step(no_compensation, retry(base = "1m", cap = "1m"))]
async fn charge(ctx: &StepContext, pieces: u32) -> Result<u32, StepError> {
    match ctx.attempt() {
        1 => Err(StepError::retry("the gateway is away")),
        2 => Err(StepError::retry_after(MINUTE, "the gateway asks for patience")),
        _ => Ok(pieces * 100),
    }
}

struct Test<S: Books> {
    time: VirtualTime,
    runtime: Runtime<S>,
    store: S,
    saga: Saga<S, u32>,
    _kept: Kept,
}

impl<S: Books> Test<S> {
    async fn of(saga: SagaBuilder<S, u32>) -> Self {
        let time = VirtualTime::new();
        let (store, kept) = S::on_clock(time.environment()).await;
        let saga = saga.build().unwrap();
        let runtime = runtime(&time, &store, &saga).await;
        Self { time, runtime, store, saga, _kept: kept }
    }

    async fn status(&self) -> SagaStatus {
        self.runtime.status("o-1").await.unwrap().unwrap()
    }

    async fn step(&self, name: &str) -> StepStatus {
        self.status().await.steps.into_iter().find(|step| step.step == name).unwrap()
    }

    async fn end(self) {
        let statistics = self.time.statistics();
        assert!(statistics.calls < CALLS_MAX, "{statistics:?}");
        let elapsed = self.time.elapsed();
        self.runtime.shutdown().await;
        assert_eq!(self.time.elapsed(), elapsed, "a shutdown takes no time");
    }
}

async fn runtime<S: Books>(time: &VirtualTime, store: &S, saga: &Saga<S, u32>) -> Runtime<S> {
    Runtime::builder(store.clone()).environment(time.environment()).saga(saga).start().await.unwrap()
}

fn named<S: Books>() -> SagaBuilder<S, u32> {
    Saga::named("order").input::<u32>()
}

/// The moment of the store that lies so long after the beginning.
#[expect(clippy::unnecessary_wraps, reason = "it is compared with times that may be missing")]
fn at(elapsed: Duration) -> Option<Timestamp> {
    Some(Timestamp::of_environment(elapsed))
}

async fn a_deadline_of_half_an_hour_undoes_a_saga<S: Books>() {
    let asking = named().step::<take_out>().wait_for::<Approval>(Wait::without_limit()).step::<note>();
    let test = Test::<S>::of(asking.deadline(30 * MINUTE)).await;
    let running = test.runtime.start(&test.saga, "o-1", 3).await.unwrap();
    test.time.advance((30 * MINUTE).saturating_sub(MOMENT)).await;
    assert_eq!((test.status().await.summary.status, test.store.counter("taken").await), (Status::Running, 3));

    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    assert_eq!(test.time.elapsed(), 30 * MINUTE);
    assert_eq!(test.step("take-out").await.undone_at, at(30 * MINUTE));
    assert_eq!((test.status().await.summary.ended_at, test.store.counter("taken").await), (at(30 * MINUTE), 0));
    test.end().await;
}

/// The deadline of a saga that a person holds up passes all the same: it is undone when the saga goes on.
async fn the_deadline_of_a_paused_saga_passes<S: Books>() {
    let asking = named().step::<take_out>().wait_for::<Approval>(Wait::without_limit()).step::<note>();
    let test = Test::<S>::of(asking.deadline(30 * MINUTE)).await;
    let running = test.runtime.start(&test.saga, "o-1", 3).await.unwrap();
    test.time.advance(MINUTE).await;
    assert_eq!(test.step("approval").await.phase, StepPhase::Started);
    test.runtime.admin().control("o-1").pause("an audit").await.unwrap();
    test.time.advance(30 * MINUTE).await;
    let paused = test.status().await;
    assert_eq!((paused.summary.status, paused.deadline), (Status::Paused, None));
    assert_eq!(test.store.counter("taken").await, 3, "nothing of it is undone while it is paused");

    test.runtime.admin().control("o-1").resume("all is well").await.unwrap();
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }), "{outcome}");
    assert_eq!(test.store.counter("taken").await, 0);
    let ended = test.status().await;
    assert!(ended.deadline.is_none() && ended.steps.iter().all(|step| step.due_at.is_none()), "{ended:?}");
    test.end().await;
}

async fn a_sleep_of_a_day_passes_in_a_few_calls<S: Books>() {
    let test = Test::<S>::of(named().step::<take_out>().sleep("rest", DAY).step::<bill>()).await;
    let running = test.runtime.start(&test.saga, "o-1", 3).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(test.time.elapsed(), DAY);
    assert_eq!(test.step("take-out").await.recorded_at, at(Duration::ZERO));
    assert_eq!((test.step("rest").await.recorded_at, test.step("bill").await.recorded_at), (at(DAY), at(DAY)));
    test.end().await;
}

async fn a_step_is_retried_when_its_minute_is_over<S: Books>() {
    let test = Test::<S>::of(named().step::<charge>().step::<bill>()).await;
    let running = test.runtime.start(&test.saga, "o-1", 3).await.unwrap();
    test.time.advance(Duration::ZERO).await;
    let failed = test.step("charge").await;
    assert_eq!((failed.attempts, failed.retrying_since), (1, at(Duration::ZERO)));
    // The pause is drawn between nothing and a minute.
    let due_in = Duration::from_micros(failed.due_at.unwrap().0.abs_diff(test.time.now().0));
    assert!(due_in <= MINUTE, "{due_in:?}");

    test.time.advance(due_in).await;
    let failed = test.step("charge").await;
    assert_eq!((failed.attempts, failed.due_at), (2, at(due_in + MINUTE)));
    test.time.advance(MINUTE.saturating_sub(MOMENT)).await;
    assert_eq!(test.step("charge").await.attempts, 2);

    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!((test.step("charge").await.attempts, test.time.elapsed()), (3, due_in + MINUTE));
    test.end().await;
}

async fn a_signal_that_does_not_come_has_its_limit<S: Books>() {
    let nobody = |_: &u32| Approval { by: "nobody".to_owned() };
    let test = Test::<S>::of(named().wait_for::<Approval>(Wait::within(10 * MINUTE).or(nobody)).step::<note>()).await;
    let running = test.runtime.start(&test.saga, "o-1", 3).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!((test.step("approval").await.recorded_at, test.time.elapsed()), (at(10 * MINUTE), 10 * MINUTE));
    assert_eq!(test.store.counter("nobody").await, 1);
    test.end().await;
}

async fn a_signal_comes_in_front_of_its_limit<S: Books>() {
    let nobody = |_: &u32| Approval { by: "nobody".to_owned() };
    let test = Test::<S>::of(named().wait_for::<Approval>(Wait::within(10 * MINUTE).or(nobody)).step::<note>()).await;
    drop(test.runtime.start(&test.saga, "o-1", 3).await.unwrap());
    test.time.advance(9 * MINUTE).await;
    assert_eq!(test.step("approval").await.phase, StepPhase::Started);
    let signal = Approval { by: "ada".to_owned() };
    assert_eq!(test.runtime.signal("o-1", "form-1", &signal).await.unwrap(), SignalOutcome::Delivered);
    test.time.advance(DAY).await;
    assert_eq!(test.step("note").await.recorded_at, at(9 * MINUTE), "time stood still while it was sent");
    assert_eq!([test.store.counter("ada").await, test.store.counter("nobody").await], [1, 0]);
    test.end().await;
}

/// Two processes on one store: the second one ends what the first one began.
async fn another_process_wakes_what_slept<S: Books>() {
    let test = Test::<S>::of(named().step::<take_out>().sleep("rest", DAY).step::<bill>()).await;
    drop(test.runtime.start(&test.saga, "o-1", 3).await.unwrap());
    test.time.advance(MINUTE).await;
    let second = runtime(&test.time, &test.store, &test.saga).await;
    test.runtime.shutdown().await;
    let outcome = second.attach("o-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(test.time.elapsed(), DAY);
    let status = second.status("o-1").await.unwrap().unwrap();
    assert_eq!(status.summary.ended_at, at(DAY));
    let statistics = test.time.statistics();
    assert!(statistics.calls < CALLS_MAX, "{statistics:?}");
    second.shutdown().await;
}

/// Its functions read a clock that stands still without a test.
#[tokio::test]
async fn a_schema_with_a_clock_of_its_own_is_refused_without_it_and_another_one_with_it() {
    let time = VirtualTime::new();
    for is_first_with in [true, false] {
        let database = saga_servers::shared::database("virtual_time").await.unwrap();
        let open = async |is_with: bool| {
            let options = PostgresOptions::from_url(database.url()).unwrap();
            let options = if is_with { options.test_clock(time.environment()) } else { options };
            PostgresStore::connect_with(options).await
        };
        let store = open(is_first_with).await.unwrap();
        assert_eq!(store.now().await.unwrap() == time.now(), is_first_with);
        open(is_first_with).await.unwrap().close().await;
        let refused = open(!is_first_with).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Corrupt, "{refused}");
        store.close().await;
    }
}

on_every_clock! {
    a_deadline_of_half_an_hour_undoes_a_saga,
    the_deadline_of_a_paused_saga_passes,
    a_sleep_of_a_day_passes_in_a_few_calls,
    a_step_is_retried_when_its_minute_is_over,
    a_signal_that_does_not_come_has_its_limit,
    a_signal_comes_in_front_of_its_limit,
    another_process_wakes_what_slept,
}
