//! A success that comes when an operator has already gone past its step.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::{Outcome, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use tokio::time::sleep;

use super::bank::Way;

/// A warehouse, as one process sees it.
#[derive(Clone, Default)]
struct Warehouse {
    /// It cannot be reached by this process.
    is_away: bool,
    released: Arc<Mutex<Vec<u32>>>,
}

/// Its compensation needs what it returned.
#[saga_step(compensate = release, retry(attempts = 1, base = "1s"), on_exhausted = "compensate")]
async fn reserve(_ctx: &StepContext, order: u32, State(warehouse): State<Warehouse>) -> Result<u32, StepError> {
    sleep(Duration::from_secs(1)).await;
    if warehouse.is_away { Err(std::io::Error::other("503"))? } else { Ok(order) }
}

#[saga_compensation]
async fn release(
    _ctx: &StepContext,
    _order: u32,
    reserved: u32,
    State(warehouse): State<Warehouse>,
) -> Result<(), StepError> {
    warehouse.released.lock().unwrap().push(reserved);
    Ok(())
}

#[saga_step(no_compensation, timeout = "1m")]
async fn deliver(_ctx: &StepContext, _order: u32) -> Result<u32, StepError> {
    sleep(Duration::from_secs(30)).await;
    Err(StepError::reject("nobody lives there"))
}

fn delivery() -> Saga<MemoryStore, u32> {
    Saga::named("delivery").input::<u32>().step::<reserve>().step::<deliver>().build().unwrap()
}

async fn process(store: &MemoryStore, way: &Way, warehouse: Warehouse) -> Runtime<MemoryStore> {
    let store = store.clone().with_commit_hook(Arc::new(way.clone()));
    Runtime::builder(store).saga(&delivery()).state(warehouse).start().await.unwrap()
}

/// An operator gives a value for a step that another process took over in vain. The process that had called the step first
/// comes back and says what it returned, while the next step is being called. That one is rejected: what is undone is what
/// the step returned, not what the operator gave.
#[tokio::test(start_paused = true)]
async fn g5_an_undo_is_given_the_success_that_came_late() {
    let (store, way, warehouse) = (MemoryStore::new(), Way::default(), Warehouse::default());
    let first = process(&store, &way, warehouse.clone()).await;
    let started = first.start(&delivery(), "order-7", 7).await.unwrap();
    sleep(Duration::from_millis(500)).await;
    way.cut();
    let second = process(&store, &Way::default(), Warehouse { is_away: true, ..warehouse.clone() }).await;
    sleep(Duration::from_secs(20)).await;
    let stuck = second.status("order-7").await.unwrap().unwrap();
    second.admin().control("order-7").at_revision(stuck.revision).skip_with(&1_u32, "looked it up").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    way.mend();

    let outcome = started.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(*warehouse.released.lock().unwrap(), [7]);
    first.shutdown().await;
    second.shutdown().await;
}
