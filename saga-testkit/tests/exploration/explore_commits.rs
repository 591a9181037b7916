//! Crash exploration of consecutive transactional steps: which of them share a commit depends on how long they take, and
//! each boundary is reached all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::engine::RuntimeBuilder;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Saga, State, StepError, saga_compensation, saga_step};
use saga_testkit::VirtualTime;
use saga_testkit::explore::{Ended, Explore, Explored, explore};

/// Whether a run was slow before.
#[derive(Clone, Default)]
struct Slow(Arc<AtomicBool>);

/// In the first run it takes too long for another step to join its commit.
#[saga_step(no_compensation)]
async fn weigh(
    conn: &mut MemoryConn,
    count: i64,
    State(slow): State<Slow>,
    State(time): State<VirtualTime>,
) -> Result<i64, StepError> {
    let _ = conn;
    if !slow.0.swap(true, Ordering::SeqCst) {
        time.sleep(Duration::from_secs(1)).await;
    }
    Ok(count)
}

#[saga_step(compensate = put_back)]
async fn take_out(conn: &mut MemoryConn, count: i64) -> Result<(), StepError> {
    conn.add("stock", -count)?;
    Ok(())
}

#[saga_compensation]
async fn put_back(conn: &mut MemoryConn, count: i64) -> Result<(), StepError> {
    conn.add("stock", count)?;
    Ok(())
}

struct OnceSlow {
    slow: Slow,
}

#[async_trait]
impl Explore for OnceSlow {
    type Store = MemoryStore;
    type Input = i64;
    type World = (Arc<MemoryStore>, VirtualTime);

    fn saga(&self) -> Saga<MemoryStore, i64> {
        let saga = Saga::named("fetch").input().step::<weigh>().step::<take_out>();
        saga.build().unwrap_or_else(|error| panic!("{error}"))
    }

    fn input(&self) -> i64 {
        3
    }

    async fn fresh(&self, time: &VirtualTime) -> (Arc<MemoryStore>, VirtualTime) {
        (Arc::new(MemoryStore::with_environment(time.environment())), time.clone())
    }

    fn store(&self, (store, _): &(Arc<MemoryStore>, VirtualTime)) -> Arc<MemoryStore> {
        Arc::clone(store)
    }

    fn states(
        &self,
        (_, time): &(Arc<MemoryStore>, VirtualTime),
        runtime: RuntimeBuilder<Explored<MemoryStore>>,
    ) -> RuntimeBuilder<Explored<MemoryStore>> {
        runtime.state(self.slow.clone()).state(time.clone())
    }

    async fn audit(&self, (store, _): &(Arc<MemoryStore>, VirtualTime), ended: &Ended) -> Result<(), String> {
        let stock = store.read(|table| table.counter("stock"));
        let expected = if *ended == Ended::Completed { -3 } else { 0 };
        if stock == expected { Ok(()) } else { Err(format!("{ended:?}, and the stock is {stock}")) }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_boundary_that_a_slow_run_had_is_reached_again() {
    let report = explore(OnceSlow { slow: Slow::default() }).await.unwrap_or_else(|failures| panic!("{failures}"));
    let boundaries = report.boundaries();
    assert!(boundaries.iter().any(|boundary| boundary == "before the transaction of take-out"), "{boundaries:#?}");
}
