//! A claim of work whose answer is lost: its rows are leased to a process that does not know them. They begin at once all the same, and
//! not when their lease ends (G8).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryConn, MemoryStore};
use saga_core::{Outcome, Runtime, Saga, Settings, State, StepError, saga_step};
use tokio::time::Instant;

/// Claims whose answers are to be lost, and after each a release that the store does not answer either.
#[derive(Clone, Default)]
struct Losses {
    claims: Arc<AtomicU32>,
    releases: Arc<AtomicU32>,
    /// How often the transaction was begun.
    attempts: Arc<AtomicU32>,
}

impl Losses {
    fn lose_next(&self) {
        self.claims.fetch_add(1, Ordering::Relaxed);
        self.releases.fetch_add(1, Ordering::Relaxed);
    }

    fn left(&self) -> (u32, u32) {
        (self.claims.load(Ordering::Relaxed), self.releases.load(Ordering::Relaxed))
    }

    fn take(left: &AtomicU32) -> bool {
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

impl CommitHook for Losses {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        let is_lost = match point {
            CommitPoint::Committed("claim") => Self::take(&self.claims),
            CommitPoint::Committing("release_unbegun") => Self::take(&self.releases),
            _ => false,
        };
        let fate = if is_lost { CommitFate::InDoubt } else { CommitFate::Proceed };
        Box::pin(std::future::ready(fate))
    }
}

/// The saga has a call and a transaction, and each of them is claimed: the call was to begin later, and the transaction behind it failed
/// once.
#[saga_step(no_compensation)]
async fn call(_order: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation, retry(attempts = 9, base = "1s", cap = "1s"))]
async fn write(tx: &mut MemoryConn, _order: u32, State(losses): State<Losses>) -> Result<(), StepError> {
    if losses.attempts.fetch_add(1, Ordering::Relaxed) == 0 {
        losses.lose_next();
        return Err(StepError::retry("not now"));
    }
    tx.add("written", 1)?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn g8_work_of_a_claim_whose_answer_was_lost_begins_long_before_its_lease_ends() {
    let losses = Losses::default();
    let store = MemoryStore::new().with_commit_hook(Arc::new(losses.clone()));
    let saga = Saga::named("writing").input::<u32>().step::<call>().step::<write>().build().unwrap();
    let runtime = Runtime::builder(store).saga(&saga).state(losses.clone()).start().await.unwrap();
    let running = runtime.start(&saga, "order", 1).after(Duration::from_secs(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(900)).await;
    losses.lose_next();
    let began = Instant::now();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    let took = began.elapsed();
    assert_eq!(losses.left(), (0, 0), "both claims were lost, and both releases failed once");
    assert!(took < Settings::default().lease_ttl / 3, "it waited for its lease: {took:?}");
    assert_eq!(runtime.store().read(|rows| rows.counter("written")), 1, "it was done once");
    runtime.shutdown().await;
}
