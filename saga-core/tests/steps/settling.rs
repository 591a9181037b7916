//! The time in which a call without an answer may land, and what ends the wait for another attempt.
#![cfg(feature = "macros")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::env::TokioEnvironment;
use saga_core::memory::MemoryStore;
use saga_core::saga::Branch;
use saga_core::{Outcome, Runtime, Saga, State, StepError, saga_compensation, saga_step};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// What happened, and how long after the beginning.
#[derive(Clone)]
struct Calls(Arc<Inner>);

struct Inner {
    began: Instant,
    made: Mutex<Vec<(&'static str, Duration)>>,
    may_fail: Notify,
}

impl Calls {
    fn new() -> Self {
        Self(Arc::new(Inner { began: Instant::now(), made: Mutex::default(), may_fail: Notify::new() }))
    }

    fn note(&self, call: &'static str) -> usize {
        let mut made = self.0.made.lock().unwrap();
        made.push((call, self.0.began.elapsed()));
        made.iter().filter(|(other, _)| *other == call).count()
    }

    fn last(&self, call: &str) -> Duration {
        let made = self.0.made.lock().unwrap();
        made.iter().rev().find(|(other, _)| *other == call).unwrap_or_else(|| panic!("no {call} in {made:?}")).1
    }

    async fn until(&self, call: &str) {
        while !self.0.made.lock().unwrap().iter().any(|(other, _)| *other == call) {
            tokio::task::yield_now().await;
        }
    }
}

/// It has no answer twice, with nearly a minute in between.
#[saga_step(compensate = refund, timeout = "10s", retry(attempts = 2), on_exhausted = "compensate")]
async fn charge(_cents: u32, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("charge");
    Err(StepError::retry_after(Duration::from_secs(58), "no answer"))
}

#[saga_compensation]
async fn refund(_cents: u32, _charged: Option<()>, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("refund");
    Ok(())
}

#[saga_step(no_compensation, timeout = "2m")]
async fn check_slowly(_cents: u32) -> Result<(), StepError> {
    sleep(Duration::from_mins(1)).await;
    Err(StepError::reject("refused"))
}

async fn runtime_of(saga: &Saga<MemoryStore, u32>, calls: &Calls) -> Runtime<MemoryStore> {
    let store = MemoryStore::with_environment(Arc::new(TokioEnvironment::current().unwrap()));
    Runtime::builder(store).saga(saga).state(calls.clone()).start().await.unwrap()
}

/// How long the last attempt of another branch took says nothing about a call without an answer.
#[tokio::test(start_paused = true)]
async fn g5_an_unknown_step_is_undone_behind_its_own_settle_time() {
    let saga: Saga<MemoryStore, u32> = Saga::named("pay")
        .input::<u32>()
        .parallel(|group| group.branch(Branch::step::<charge>).branch(Branch::step::<check_slowly>))
        .build()
        .unwrap();
    let calls = Calls::new();
    let runtime = runtime_of(&saga, &calls).await;
    let outcome = runtime.start(&saga, "o-1", 7).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    let (charged, refunded) = (calls.last("charge"), calls.last("refund"));
    assert!(refunded >= charged + Duration::from_secs(20), "charged after {charged:?}, refunded after {refunded:?}");
    runtime.shutdown().await;
}

/// It fails when the test lets it, and would be tried again a day later.
#[saga_step(compensate = refund)]
async fn charge_tomorrow(_cents: u32, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("charge");
    calls.0.may_fail.notified().await;
    Err(StepError::retry_after(Duration::from_hours(24), "closed today"))
}

/// A cancel leaves out a command that a worker holds. When its call fails, the saga is called off already.
#[tokio::test(start_paused = true)]
async fn a_call_that_fails_behind_a_cancel_is_not_waited_for() {
    let saga: Saga<MemoryStore, u32> = Saga::named("pay").input::<u32>().step::<charge_tomorrow>().build().unwrap();
    let calls = Calls::new();
    let runtime = runtime_of(&saga, &calls).await;
    let running = runtime.start(&saga, "o-1", 7).await.unwrap();
    calls.until("charge").await;
    runtime.admin().control("o-1").cancel("not wanted any more").await.unwrap();
    calls.0.may_fail.notify_one();
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    let took = calls.0.began.elapsed();
    assert!(took < Duration::from_hours(1), "it waited {took:?}");
    runtime.shutdown().await;
}

#[saga_step(no_compensation)]
async fn check(_cents: u32, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.until("charge").await;
    // The other call fails first, and waits for its next attempt.
    sleep(Duration::from_secs(1)).await;
    Err(StepError::reject("refused"))
}

/// A branch that fails ends the waits of the others for another attempt.
#[tokio::test(start_paused = true)]
async fn a_failed_branch_ends_the_wait_of_another_for_its_next_attempt() {
    let saga: Saga<MemoryStore, u32> = Saga::named("pay")
        .input::<u32>()
        .parallel(|group| group.branch(Branch::step::<charge_tomorrow>).branch(Branch::step::<check>))
        .build()
        .unwrap();
    let calls = Calls::new();
    calls.0.may_fail.notify_one();
    let runtime = runtime_of(&saga, &calls).await;
    let outcome = runtime.start(&saga, "o-1", 7).await.unwrap().outcome().await.unwrap();
    assert!(outcome.to_string().contains("refused"), "{outcome}");
    let took = calls.0.began.elapsed();
    assert!(took < Duration::from_hours(1), "it waited {took:?}");
    runtime.shutdown().await;
}
