//! Step transactions that fail each time: where only they do, their step is to blame, and where nothing works, nobody is
//! (G8).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use saga_core::engine::ComponentHealth;
use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryConn, MemoryStore};
use saga_core::store::{Sagas as _, StoreError, StoreErrorKind};
use saga_core::{Key, Outcome, Runtime, Saga, State, StepError, Tenant, saga_step};

/// More than there are workers.
const SPOILERS: u32 = 10;

/// What fails.
#[derive(Clone)]
struct Fault(Arc<Inside>);

struct Inside {
    kind: StoreErrorKind,
    /// The transaction that is open now does not commit.
    spoilt: AtomicBool,
    /// Nothing is written at all.
    everything: AtomicBool,
    /// How often the step was called.
    calls: AtomicU32,
}

impl Fault {
    fn of(kind: StoreErrorKind) -> Self {
        let inside = Inside { kind, spoilt: false.into(), everything: false.into(), calls: 0.into() };
        Self(Arc::new(inside))
    }
}

impl CommitHook for Fault {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        // What cannot be written can still be read.
        let is_away = self.0.kind == StoreErrorKind::Unavailable;
        let operation = match point {
            CommitPoint::Committing(operation) => operation,
            CommitPoint::Reading(operation) if is_away => operation,
            _ => return Box::pin(async { CommitFate::Proceed }),
        };
        let is_committing = matches!(point, CommitPoint::Committing("transact"));
        let is_spoilt = is_committing && self.0.spoilt.swap(false, Ordering::Relaxed);
        let fate = if is_spoilt || self.0.everything.load(Ordering::Relaxed) {
            CommitFate::Fail(StoreError::new(self.0.kind, operation, "it cannot be written"))
        } else {
            CommitFate::Proceed
        };
        Box::pin(std::future::ready(fate))
    }
}

/// Its transaction never commits.
#[saga_step(no_compensation, retry(attempts = 2, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn spoil(_tx: &mut MemoryConn, _number: u32, State(fault): State<Fault>) -> Result<(), StepError> {
    fault.0.calls.fetch_add(1, Ordering::Relaxed);
    fault.0.spoilt.store(true, Ordering::Relaxed);
    Ok(())
}

#[saga_step(no_compensation, retry(attempts = 2, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn write(tx: &mut MemoryConn, number: u32, State(fault): State<Fault>) -> Result<(), StepError> {
    fault.0.calls.fetch_add(1, Ordering::Relaxed);
    tx.add(&format!("written-{number}"), 1)?;
    Ok(())
}

fn spoiling() -> Saga<MemoryStore, u32> {
    Saga::named("spoiling").input::<u32>().step::<spoil>().build().unwrap()
}

fn writing() -> Saga<MemoryStore, u32> {
    Saga::named("writing").input::<u32>().step::<write>().build().unwrap()
}

async fn runtime(fault: &Fault) -> Runtime<MemoryStore> {
    let store = MemoryStore::new().with_commit_hook(Arc::new(fault.clone()));
    let builder = Runtime::builder(store).saga(&spoiling()).saga(&writing()).state(fault.clone());
    builder.start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn g8_a_step_whose_transaction_never_commits_is_blamed_and_frees_its_worker() {
    for kind in [StoreErrorKind::NotWritable, StoreErrorKind::Corrupt, StoreErrorKind::Unavailable] {
        let fault = Fault::of(kind);
        let runtime = runtime(&fault).await;
        let spoiling = spoiling();
        let asked = (0..SPOILERS).map(|number| (format!("bad-{number}"), number));
        let bad = runtime.start_many(&spoiling, asked).await;
        let in_time = async {
            let good = runtime.start(&writing(), "good", 1).await.unwrap();
            assert!(matches!(good.outcome().await.unwrap(), Outcome::Completed { .. }));
            for running in bad {
                let outcome = running.unwrap().outcome().await.unwrap().to_string();
                assert!(outcome.contains("failed: transact: it cannot be written"), "{outcome}");
            }
        };
        tokio::time::timeout(Duration::from_mins(5), in_time).await.unwrap_or_else(|_| panic!("{kind:?} stops all"));
        assert_eq!(runtime.health().store, ComponentHealth::Healthy, "{kind:?}");
        runtime.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g8_a_store_that_cannot_be_written_blames_nobody() {
    for kind in [StoreErrorKind::NotWritable, StoreErrorKind::Unavailable] {
        let fault = Fault::of(kind);
        let runtime = runtime(&fault).await;
        let writing = writing();
        let running = runtime.start(&writing, "waiting", 1).after(Duration::from_secs(1)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let other = runtime.start(&writing, "other", 2).after(Duration::from_secs(1)).await.unwrap();
        fault.0.everything.store(true, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert!(matches!(runtime.health().store, ComponentHealth::Failing { .. }), "{kind:?}: health hides it");
        fault.0.everything.store(false, Ordering::Relaxed);
        for running in [running, other] {
            assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }), "{kind:?}");
        }
        tokio::time::sleep(Duration::from_mins(1)).await;
        let health = runtime.health();
        assert_eq!((health.store, health.store_recoveries), (ComponentHealth::Healthy, 1), "{kind:?}: it is over");
        let whole = runtime.store().saga_with_steps(&Tenant::default(), &Key::new("other").unwrap()).await;
        let whole = whole.unwrap().unwrap();
        assert_eq!((whole.history.len(), whole.records[0].attempts), (0, 1), "{kind:?}: {:?}", whole.history);
        runtime.shutdown().await;
    }
}
