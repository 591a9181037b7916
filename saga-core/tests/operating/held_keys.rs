//! Keys and rows that somebody holds in an open transaction: who wants them waits, and nobody else does (G8).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use saga_core::engine::{ControlOutcome, SagaAdmin};
use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryConn, MemoryStore};
use saga_core::store::{StoreError, StoreErrorKind};
use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};

/// What is not held up ends long before.
const SOON: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(20);

/// Without a state that its store would have to write.
#[saga_step(no_compensation)]
async fn wave(_number: u32) -> Result<(), StepError> {
    Ok(())
}

/// It takes as long as its input says, in seconds.
#[saga_step(no_compensation, timeout = "1m")]
async fn last(tx: &mut MemoryConn, seconds: u32) -> Result<(), StepError> {
    tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    tx.add("lasted", 1)?;
    Ok(())
}

fn waving() -> Saga<MemoryStore, u32> {
    Saga::named("waving").input::<u32>().step::<wave>().build().unwrap()
}

fn lasting() -> Saga<MemoryStore, u32> {
    Saga::named("lasting").input::<u32>().step::<last>().build().unwrap()
}

async fn runtime(store: &MemoryStore) -> Runtime<MemoryStore> {
    Runtime::builder(store.clone()).saga(&waving()).saga(&lasting()).start().await.unwrap()
}

async fn ends_soon(runtime: &Runtime<MemoryStore>, key: &str) {
    let ends = async { runtime.start(&waving(), key, 0).await.unwrap().outcome().await.unwrap() };
    let outcome = tokio::time::timeout(SOON, ends).await.expect("another key is waited for");
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
}

#[tokio::test(start_paused = true)]
async fn g8_a_start_that_waits_for_a_key_holds_up_no_other() {
    let store = MemoryStore::new();
    let runtime = runtime(&store).await;
    let mut application = store.transaction();
    runtime.start(&waving(), "held", 0).in_tx(application.conn()).await.unwrap();
    let waiting = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.start(&waving(), "held", 0).await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    ends_soon(&runtime, "other").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    application.commit().unwrap();
    let running = waiting.await.unwrap().unwrap();
    assert!(running.already_started());
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn g8_a_key_that_is_never_let_go_is_told_to_who_starts_it() {
    let store = MemoryStore::new();
    let runtime = runtime(&store).await;
    let mut application = store.transaction();
    runtime.start(&waving(), "held", 0).in_tx(application.conn()).await.unwrap();
    let refused = tokio::time::timeout(Duration::from_mins(1), runtime.start(&waving(), "held", 0)).await;
    let error = refused.expect("it waits without a limit").unwrap_err();
    assert!(error.to_string().contains("holds"), "{error}");
    drop(application);
    assert!(!runtime.start(&waving(), "held", 0).await.unwrap().already_started());
    runtime.shutdown().await;
}

/// A client that retries while the first step of its saga takes long: the saga is one, and what others start is not held up.
#[tokio::test(start_paused = true)]
async fn g8_starts_of_a_key_that_is_under_way_wait_for_it_alone() {
    let store = MemoryStore::new();
    let runtime = runtime(&store).await;
    // The step is known to be quick from here on, so that it runs in the transaction that starts its saga.
    runtime.start(&lasting(), "warm", 0).await.unwrap().outcome().await.unwrap();
    let starts: Vec<_> = (0..10)
        .map(|_| {
            let runtime = runtime.clone();
            tokio::spawn(async move { runtime.start(&lasting(), "slow", 20).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    ends_soon(&runtime, "other").await;
    for start in starts {
        let running = tokio::time::timeout(LONG, start).await.unwrap().unwrap().unwrap();
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    }
    assert_eq!(store.read(|table| table.counter("lasted")), 2, "each saga once");
    runtime.shutdown().await;
}

/// Every second group of records meets a lock; each change is written all the same, once.
#[derive(Default)]
struct Locks {
    groups: AtomicU32,
    met: AtomicU32,
}

struct Hook(Arc<Locks>);

impl CommitHook for Hook {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        let CommitPoint::Committing(operation @ ("record" | "start")) = point else {
            return Box::pin(async { CommitFate::Proceed });
        };
        let is_locked = self.0.groups.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        Box::pin(std::future::ready(if is_locked {
            self.0.met.fetch_add(1, Ordering::Relaxed);
            CommitFate::Fail(StoreError::new(StoreErrorKind::Conflict, operation, "a lock"))
        } else {
            CommitFate::Proceed
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn what_meets_a_lock_is_parted_and_written_once() {
    let locks = Arc::new(Locks::default());
    let store = MemoryStore::new().with_commit_hook(Arc::new(Hook(Arc::clone(&locks))));
    let runtime = runtime(&store).await;
    let waving = waving();
    let starts: Vec<_> = (0..100)
        .map(|number| {
            let (runtime, waving) = (runtime.clone(), waving.clone());
            tokio::spawn(
                async move { runtime.start(&waving, format!("k-{number}"), number).await.unwrap().outcome().await },
            )
        })
        .collect();
    for start in starts {
        assert!(matches!(start.await.unwrap().unwrap(), Outcome::Completed { .. }));
    }
    assert!(locks.met.load(Ordering::Relaxed) > 0, "no lock was met");
    runtime.shutdown().await;
}

/// An operator's action waits for the transaction that holds a row of the saga, as the steps do.
#[tokio::test(start_paused = true)]
async fn an_operator_who_meets_a_lock_is_not_refused() {
    let locks = Arc::new(Locks::default());
    let store = MemoryStore::new().with_commit_hook(Arc::new(Hook(Arc::clone(&locks))));
    let runtime = runtime(&store).await;
    let running = runtime.start(&waving(), "k-1", 1).after(LONG).await.unwrap();
    let admin = SagaAdmin::new(store.clone()).saga(&waving());
    let met = locks.met.load(Ordering::Relaxed);
    for desk in [runtime.admin(), admin] {
        assert_eq!(desk.control("k-1").pause("an audit").await.unwrap(), ControlOutcome::Applied);
        assert_eq!(desk.control("k-1").resume("all is well").await.unwrap(), ControlOutcome::Applied);
    }
    assert!(locks.met.load(Ordering::Relaxed) > met, "no lock was met");
    drop(running);
    runtime.shutdown().await;
}

/// Each record of one saga meets a lock, as long as another process is frozen that holds its row.
#[derive(Default)]
struct Frozen(AtomicBool);

impl CommitHook for Frozen {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        let is_locked = point == CommitPoint::Committing("record") && self.0.load(Ordering::SeqCst);
        let error = || StoreError::new(StoreErrorKind::Conflict, "record", "a lock");
        Box::pin(std::future::ready(if is_locked { CommitFate::Fail(error()) } else { CommitFate::Proceed }))
    }
}

/// G8: other work falls due meanwhile, and is claimed.
#[tokio::test(start_paused = true)]
async fn g8_a_deadline_that_meets_a_lock_holds_up_no_other_work() {
    let frozen = Arc::new(Frozen::default());
    let store = MemoryStore::new().with_commit_hook(Arc::clone(&frozen) as Arc<dyn CommitHook>);
    let overdue = Saga::named("overdue").input::<u32>().deadline(3 * SOON).step::<last>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&overdue).saga(&lasting()).start().await.unwrap();
    let locked = runtime.start(&overdue, "locked", 40).await.unwrap();
    // Its only commit is the transaction of its step, which no lock holds up.
    let later = runtime.start(&lasting(), "later", 0).after(4 * SOON).await.unwrap();
    frozen.0.store(true, Ordering::SeqCst);
    let began = tokio::time::Instant::now();
    tokio::time::timeout(5 * SOON, later.outcome()).await.expect("it is claimed in time").unwrap();
    assert!(began.elapsed() >= 4 * SOON);
    frozen.0.store(false, Ordering::SeqCst);
    assert!(matches!(locked.outcome().await.unwrap(), Outcome::Compensated { .. }));
    runtime.shutdown().await;
}
