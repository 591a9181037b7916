//! Virtual time on the store in memory: when it passes, and when it stands still.

use std::sync::Arc;
use std::time::Duration;

use saga_core::engine::RuntimeBuilder;
use saga_core::memory::MemoryStore;
use saga_core::store::Status;
use saga_core::{Outcome, Runtime, Saga, State, StepError, saga_step};
use saga_testkit::VirtualTime;
use tokio::sync::Notify;

const DAY: Duration = Duration::from_hours(24);
/// A day without the shortest time that a store tells apart.
const NEARLY_A_DAY: Duration = DAY.saturating_sub(Duration::from_micros(1));

#[saga_step]
async fn remind(_customer: String) -> Result<(), StepError> {
    Ok(())
}

fn reminder() -> Saga<MemoryStore, String> {
    Saga::named("reminder").input().sleep("pause", DAY).step::<remind>().build().unwrap()
}

/// Another system, which answers when it is told to.
#[derive(Debug, Default)]
struct Gate {
    called: Notify,
    answers: Notify,
}

#[saga_step(no_compensation, timeout = "10m")]
async fn ask(State(gate): State<Arc<Gate>>, _customer: String) -> Result<(), StepError> {
    gate.called.notify_one();
    gate.answers.notified().await;
    Ok(())
}

/// Another system, which takes its time.
#[saga_step(no_compensation, timeout = "30s", retry(attempts = 1))]
async fn answer_after(State(time): State<VirtualTime>, seconds: String) -> Result<(), StepError> {
    time.sleep(Duration::from_secs(seconds.parse().map_err(StepError::retry)?)).await;
    Ok(())
}

fn builder(time: &VirtualTime, saga: &Saga<MemoryStore, String>) -> RuntimeBuilder<MemoryStore> {
    on(&MemoryStore::with_environment(time.environment()), time, saga)
}

fn on(store: &MemoryStore, time: &VirtualTime, saga: &Saga<MemoryStore, String>) -> RuntimeBuilder<MemoryStore> {
    Runtime::builder(store.clone()).environment(time.environment()).saga(saga)
}

async fn status(runtime: &Runtime<MemoryStore>) -> Status {
    runtime.status("s-1").await.unwrap().unwrap().summary.status
}

#[tokio::test]
async fn a_day_passes_while_an_outcome_is_awaited() {
    let (time, saga) = (VirtualTime::new(), reminder());
    let runtime = builder(&time, &saga).start().await.unwrap();
    let running = runtime.start(&saga, "s-1", "Ada".to_owned()).await.unwrap();
    assert_eq!(time.elapsed(), Duration::ZERO, "a start takes no time");

    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(time.elapsed(), DAY);
    let statistics = time.statistics();
    assert!(statistics.calls < 60 && statistics.jumps < 10, "{statistics:?}");
    runtime.shutdown().await;
}

#[tokio::test]
async fn time_stands_still_unless_it_is_advanced_or_an_outcome_is_awaited() {
    let (time, saga) = (VirtualTime::new(), reminder());
    let runtime = builder(&time, &saga).start().await.unwrap();
    drop(runtime.start(&saga, "s-1", "Ada".to_owned()).await.unwrap());
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(time.elapsed(), Duration::ZERO);

    time.advance(NEARLY_A_DAY).await;
    assert_eq!((status(&runtime).await, time.elapsed()), (Status::Running, NEARLY_A_DAY));
    time.advance(Duration::from_micros(1)).await;
    assert_eq!((status(&runtime).await, time.elapsed()), (Status::Completed, DAY), "what was due by then was done");
    runtime.shutdown().await;
    assert_eq!(time.elapsed(), DAY, "a shutdown takes no time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_runs_holds_the_clock() {
    let (time, gate) = (VirtualTime::new(), Arc::new(Gate::default()));
    let saga = Saga::named("asking").input().step::<ask>().build().unwrap();
    let runtime = builder(&time, &saga).state(Arc::clone(&gate)).start().await.unwrap();
    let running = runtime.start(&saga, "s-1", "Ada".to_owned()).await.unwrap();
    let answering = async {
        gate.called.notified().await;
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
            assert_eq!(time.elapsed(), Duration::ZERO, "its time limit does not pass");
        }
        gate.answers.notify_one();
    };
    tokio::join!(time.advance(DAY), answering);
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(time.elapsed(), DAY);
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_step_takes_virtual_time_and_meets_its_limit_in_it() {
    let time = VirtualTime::new();
    let saga = Saga::named("slow").input().step::<answer_after>().build().unwrap();
    let runtime = builder(&time, &saga).state(time.clone()).start().await.unwrap();
    let quick = runtime.start(&saga, "quick", "29".to_owned()).await.unwrap();
    assert!(matches!(quick.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(time.elapsed(), Duration::from_secs(29));

    let slow = runtime.start(&saga, "slow", "31".to_owned()).await.unwrap();
    let outcome = slow.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Stuck { .. }), "{outcome:?}");
    assert_eq!(time.elapsed(), Duration::from_secs(59));
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_process_finds_what_another_one_leaves_before_time_passes() {
    let (time, saga) = (VirtualTime::new(), reminder());
    let short = Saga::named("short").input().step::<remind>().build().unwrap();
    let store = MemoryStore::with_environment(time.environment());
    let caller = on(&store, &time, &short).start().await.unwrap();
    let worker = on(&store, &time, &saga).saga(&short).start().await.unwrap();
    drop(worker.start(&saga, "s-1", "Ada".to_owned()).await.unwrap());

    // The caller commits this saga, so the runtime gets no notice of it.
    let mut transaction = store.transaction();
    drop(caller.start(&short, "s-2", "Ada".to_owned()).in_tx(transaction.conn()).await.unwrap());
    transaction.commit().unwrap();
    let running = caller.attach("s-2").await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(time.elapsed(), Duration::ZERO, "both have looked before the clock went a day ahead");
    assert_eq!(status(&worker).await, Status::Running);
    caller.shutdown().await;
    worker.shutdown().await;
}
