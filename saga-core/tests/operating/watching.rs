//! What the store is asked for while somebody waits for a saga, or a saga for a person.
#![cfg(feature = "macros")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use saga_core::engine::SagaAdmin;
use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::store::Sagas as _;
use saga_core::{Key, Outcome, Runtime, Saga, State, StepError, Tenant, saga_step};
use tokio::sync::Notify;
use tokio::time::timeout;

const HOUR: Duration = Duration::from_hours(1);

/// What was read of sagas.
#[derive(Default)]
struct Reads {
    whole: AtomicU32,
    standings: AtomicU32,
}

impl CommitHook for Reads {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        match point {
            CommitPoint::Reading("sagas_by_id") => _ = self.whole.fetch_add(1, Ordering::SeqCst),
            CommitPoint::Reading("progress") => _ = self.standings.fetch_add(1, Ordering::SeqCst),
            _ => {}
        }
        Box::pin(async { CommitFate::Proceed })
    }
}

#[saga_step(no_compensation)]
async fn send_report(_conn: &mut MemoryConn, _month: u32) -> Result<(), StepError> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_long_reads_little_and_is_told_in_time() {
    let reads = Arc::new(Reads::default());
    let store = MemoryStore::new().with_commit_hook(Arc::clone(&reads) as Arc<dyn CommitHook>);
    let saga = Saga::named("report").input::<u32>().step::<send_report>().build().unwrap();
    let idle = Runtime::builder(store.clone()).saga(&saga).start().await.unwrap();
    let began = tokio::time::Instant::now();
    let running = idle.start(&saga, "report-1", 1).after(10 * HOUR).await.unwrap();
    let outcome = running.outcome();
    tokio::pin!(outcome);
    assert!(timeout(HOUR, &mut outcome).await.is_err(), "it begins in ten hours");
    let (whole, standings) = (reads.whole.load(Ordering::SeqCst), reads.standings.load(Ordering::SeqCst));
    assert_eq!(whole, 0, "what the saga carries is not read while nothing happens");
    assert!((1_700..=2_500).contains(&standings), "every two seconds, and at first more often: {standings}");

    let outcome = timeout(10 * HOUR, outcome).await.unwrap().unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    let late = began.elapsed().saturating_sub(10 * HOUR);
    assert!(late < Duration::from_secs(5), "it is told {late:?} after the step was due");
    idle.shutdown().await;
}

/// Whether the store is full.
#[derive(Clone, Default)]
struct Full(Arc<AtomicBool>);

/// What it returns cannot be stored, so that it needs a person.
#[saga_step(no_compensation)]
async fn write_much(_conn: &mut MemoryConn, _month: u32) -> Result<String, StepError> {
    Ok("x".repeat(1 << 20))
}

#[saga_step(no_compensation, retry(attempts = 9, base = "10s", cap = "10s"), on_exhausted = "compensate")]
async fn write_late(_conn: &mut MemoryConn, _month: u32, State(full): State<Full>) -> Result<(), StepError> {
    if full.0.swap(true, Ordering::SeqCst) { Ok(()) } else { Err(StepError::retry("full")) }
}

#[tokio::test(start_paused = true)]
async fn a_step_beside_one_that_is_stuck_is_looked_at_ever_more_rarely() {
    let store = MemoryStore::new();
    let saga = Saga::named("report").input::<u32>();
    let saga = saga.parallel(|group| group.branch(Branch::step::<write_much>).branch(Branch::step::<write_late>));
    let saga = saga.build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&saga).state(Full::default()).start().await.unwrap();
    let running = runtime.start(&saga, "report-1", 1).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Stuck { .. }));
    tokio::time::sleep(HOUR).await;
    let whole = store.saga_with_steps(&Tenant::default(), &Key::new("report-1").unwrap()).await.unwrap().unwrap();
    let row = whole.work.iter().find(|work| work.step.as_str() == "write-late").unwrap();
    // Each look claims the row, which raises its epoch.
    assert!((100..=200).contains(&row.work.epoch), "every half minute: {}", row.work.epoch);
}

/// Whether it was called before, and what holds up its second call.
#[derive(Clone, Default)]
struct Desk {
    was_called: Arc<AtomicBool>,
    go_on: Arc<Notify>,
}

#[saga_step(no_compensation, timeout = "20h")]
async fn ask_a_person(_month: u32, State(desk): State<Desk>) -> Result<(), StepError> {
    if !desk.was_called.swap(true, Ordering::SeqCst) {
        return Err(StepError::stuck("the desk is closed"));
    }
    desk.go_on.notified().await;
    Ok(())
}

/// Another process has the saga tried again. What was told of it before is no longer true.
#[tokio::test(start_paused = true)]
async fn a_saga_that_goes_on_elsewhere_is_not_stuck_any_more() {
    let (store, desk) = (MemoryStore::new(), Desk::default());
    let saga = Saga::named("report").input::<u32>().step::<ask_a_person>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&saga).state(desk.clone()).start().await.unwrap();
    let running = runtime.start(&saga, "report-1", 1).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Stuck { .. }));
    SagaAdmin::new(store).saga(&saga).actor("ann").control("report-1").retry("it is open now").await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(timeout(HOUR, running.outcome()).await.is_err(), "it is under way");
    let attached = runtime.attach("report-1").await.unwrap();
    assert!(timeout(HOUR, attached.outcome()).await.is_err(), "it is under way");
    desk.go_on.notify_one();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    runtime.shutdown().await;
}
