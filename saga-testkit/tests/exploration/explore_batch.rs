//! Crash exploration of a saga with batch steps: a sound one passes, and one is found that writes for what it rejects.

use std::sync::Arc;

use async_trait::async_trait;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Batch, BatchResults, Saga, StepError, saga_compensation, saga_step};
use saga_testkit::VirtualTime;
use saga_testkit::explore::{Ended, Explore, Failures, explore};

/// More than this is never there.
const STOCK: i64 = 10;

#[saga_step(compensate = put_back)]
async fn take_out(conn: &mut MemoryConn, orders: Batch<i64>) -> Result<BatchResults<i64>, StepError> {
    let taken: i64 = orders.iter().filter(|pieces| **pieces <= STOCK).sum();
    if taken > 0 {
        conn.add("stock", -taken)?;
    }
    Ok(orders.map_each(|pieces| if *pieces <= STOCK { Ok(*pieces) } else { Err(StepError::reject("sold out")) }))
}

/// It takes for all, and rejects some.
#[saga_step(name = "take-out", compensate = put_back)]
async fn take_out_for_all(conn: &mut MemoryConn, orders: Batch<i64>) -> Result<BatchResults<i64>, StepError> {
    conn.add("stock", -orders.iter().sum::<i64>())?;
    Ok(orders.map_each(|pieces| if *pieces <= STOCK { Ok(*pieces) } else { Err(StepError::reject("sold out")) }))
}

#[saga_compensation]
async fn put_back(conn: &mut MemoryConn, pieces: i64, taken: i64) -> Result<(), StepError> {
    assert_eq!(pieces, taken);
    conn.add("stock", taken)?;
    Ok(())
}

#[saga_step]
async fn confirm(conn: &mut MemoryConn, orders: Batch<i64>) -> Result<BatchResults<()>, StepError> {
    conn.add("sold", orders.iter().sum())?;
    Ok(orders.map_each(|_| ()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shop {
    Sound,
    /// It writes for what it rejects.
    TakesForAll,
    /// It names an input that is not rejected.
    NamesAGoodOne,
}

#[async_trait]
impl Explore for Shop {
    type Store = MemoryStore;
    type Input = i64;
    type World = Arc<MemoryStore>;

    fn saga(&self) -> Saga<MemoryStore, i64> {
        let saga = Saga::named("buy").input();
        let saga = if *self == Self::TakesForAll { saga.step::<take_out_for_all>() } else { saga.step::<take_out>() };
        saga.step::<confirm>().build().unwrap()
    }

    fn input(&self) -> i64 {
        3
    }

    async fn fresh(&self, time: &VirtualTime) -> Arc<MemoryStore> {
        Arc::new(MemoryStore::with_environment(time.environment()))
    }

    fn store(&self, world: &Arc<MemoryStore>) -> Arc<MemoryStore> {
        Arc::clone(world)
    }

    fn rejected_by(&self, step: &str) -> Option<i64> {
        let pieces = if *self == Self::NamesAGoodOne { STOCK } else { STOCK + 1 };
        (step == "take-out").then_some(pieces)
    }

    async fn tables(&self, world: &Arc<MemoryStore>) -> Option<Vec<String>> {
        Some(world.read(|table| table.rows().map(|(name, value)| format!("{name} {value:?}")).collect()))
    }

    async fn audit(&self, world: &Arc<MemoryStore>, ended: &Ended) -> Result<(), String> {
        let (stock, sold) = world.read(|table| (table.counter("stock"), table.counter("sold")));
        match ended {
            Ended::Completed if stock == -sold && sold > 0 => Ok(()),
            // What was taken for a rejected input is not looked for here: the exploration does.
            Ended::Compensated if sold == 0 && (stock == 0 || *self == Self::TakesForAll) => Ok(()),
            _ => Err(format!("{ended:?}, and stock and sold are {stock} and {sold}")),
        }
    }
}

fn problems(failures: &Failures) -> Vec<&str> {
    let answered = |disturbance: &str| disturbance.contains("rejects by its answer");
    let broken = failures.broken.iter().filter(|broken| answered(&broken.disturbance));
    broken.map(|broken| broken.problem.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sound_batch_steps_survive_everything() {
    let report = explore(Shop::Sound).await.unwrap_or_else(|failures| panic!("{failures}"));
    assert_eq!(report.compared(), 1, "{report}");
    for boundary in ["before take-out", "behind take-out", "behind the transaction of take-out:undo"] {
        assert!(report.boundaries().iter().any(|known| known == boundary), "{boundary}: {:#?}", report.boundaries());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_for_a_rejected_input_is_found() {
    let failures = explore(Shop::TakesForAll).await.unwrap_err();
    let problems = problems(&failures);
    assert!(problems.iter().any(|problem| problem.contains("the row \"stock")), "{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_that_is_not_rejected_is_no_proof() {
    let failures = explore(Shop::NamesAGoodOne).await.unwrap_err();
    assert!(
        problems(&failures)
            .iter()
            .any(|problem| problem.contains("instead of Compensated") || problem.contains("something was written")),
        "{failures}"
    );
}
