//! External steps that take longer than a lease: their claims are kept, and they are told when they are not wanted.
#![cfg(feature = "macros")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use saga_core::engine::CompensationCause;
use saga_core::memory::MemoryStore;
use saga_core::store::{Sagas as _, Work as _};
use saga_core::{
    Key, Outcome, Runtime, Saga, Settings, State, StepContext, StepError, Tenant, saga_compensation, saga_step,
};
use tokio::sync::Notify;

const LEASE: Duration = Duration::from_secs(30);

/// What the hauls do.
#[derive(Clone, Default)]
struct Depot(Arc<Yard>);

#[derive(Default)]
struct Yard {
    begun: AtomicU32,
    at_once: AtomicU32,
    most: AtomicU32,
    given_up: AtomicU32,
    begins: Notify,
}

/// Leaves the yard also where its call is dropped.
struct Inside(Depot);

impl Depot {
    fn enter(&self) -> Inside {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        let at_once = self.0.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(at_once, Ordering::SeqCst);
        self.0.begins.notify_one();
        Inside(self.clone())
    }

    fn begun(&self) -> u32 {
        self.0.begun.load(Ordering::SeqCst)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.at_once.fetch_sub(1, Ordering::SeqCst);
    }
}

/// It takes ten leases, and looks whether it is wanted.
#[saga_step(exclusive, compensate = unhaul, timeout = "1h", retry(attempts = 4, base = "1ms"), on_exhausted = "compensate")]
async fn haul(ctx: &StepContext, _load: u32, State(depot): State<Depot>) -> Result<u64, StepError> {
    let _inside = depot.enter();
    tokio::select! {
        () = ctx.cancelled() => {
            depot.0.given_up.fetch_add(1, Ordering::SeqCst);
            Err(StepError::not_sent("no longer wanted"))
        }
        () = tokio::time::sleep(10 * LEASE) => Ok(ctx.fencing_token()),
    }
}

#[saga_compensation]
async fn unhaul(_ctx: &StepContext, _load: u32) -> Result<(), StepError> {
    Ok(())
}

fn hauling() -> Saga<MemoryStore, u32> {
    Saga::named("haul").input::<u32>().step::<haul>().build().unwrap()
}

async fn replica(store: &MemoryStore, saga: &Saga<MemoryStore, u32>, depot: &Depot) -> Runtime<MemoryStore> {
    let settings = |settings: &mut Settings| settings.lease_ttl = LEASE;
    let builder = Runtime::builder(store.clone()).saga(saga).state(depot.clone()).settings(settings);
    builder.start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_takes_longer_than_a_lease_is_begun_once() {
    let (store, saga, depot) = (MemoryStore::new(), hauling(), Depot::default());
    let (first, second) = (replica(&store, &saga, &depot).await, replica(&store, &saga, &depot).await);
    let outcome = first.start(&saga, "o-1", 7).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(depot.begun(), 1);
    first.shutdown().await;
    second.shutdown().await;
}

/// Somebody else has the claim, whatever the reason: the call is given up, and what it would say counts for nothing.
#[tokio::test(start_paused = true)]
async fn g7_a_call_whose_claim_was_lost_is_given_up() {
    let (store, saga, depot) = (MemoryStore::new(), hauling(), Depot::default());
    let runtime = replica(&store, &saga, &depot).await;
    let running = runtime.start(&saga, "o-1", 7).await.unwrap();
    depot.0.begins.notified().await;
    let stored = store.saga_with_steps(&Tenant::default(), &Key::new("o-1").unwrap()).await.unwrap().unwrap();
    assert_eq!(store.release_work(&[stored.work[0].work]).await.unwrap(), [true]);
    depot.0.begins.notified().await;
    tokio::time::sleep(LEASE / 2).await;
    assert_eq!((depot.begun(), depot.0.at_once.load(Ordering::SeqCst)), (2, 1), "the first was dropped");
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(depot.begun(), 2);
    runtime.shutdown().await;
}

/// A saga that is cancelled says so to the call that is under way.
#[tokio::test(start_paused = true)]
async fn what_is_no_longer_wanted_is_told() {
    let (store, saga, depot) = (MemoryStore::new(), hauling(), Depot::default());
    let runtime = replica(&store, &saga, &depot).await;
    let running = runtime.start(&saga, "o-1", 7).await.unwrap();
    depot.0.begins.notified().await;
    let began = tokio::time::Instant::now();
    runtime.cancel("o-1", "sold").await.unwrap();
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome}");
    assert_eq!(depot.0.given_up.load(Ordering::SeqCst), 1);
    assert!(began.elapsed() <= LEASE, "{:?}", began.elapsed());
    runtime.shutdown().await;
}
