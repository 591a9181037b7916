//! What a step emitted whose success comes when an operator has already gone past it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::memory::{MemoryConn, MemoryStore, MemoryTransport};
use saga_core::{Event, Outcome, Runtime, Saga, Service, State, StepContext, StepError, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::bank::Way;

#[derive(Debug, Serialize, Deserialize)]
struct Reserved {
    order: u32,
}

impl Event for Reserved {
    const NAME: &'static str = "reserved";
}

/// A warehouse, as one process sees it.
#[derive(Clone)]
struct Warehouse {
    is_away: bool,
}

/// Its compensation needs what it returned.
#[saga_step(compensate = release, retry(attempts = 1, base = "1s"), on_exhausted = "compensate")]
async fn reserve(ctx: &StepContext, order: u32, State(warehouse): State<Warehouse>) -> Result<u32, StepError> {
    sleep(Duration::from_secs(1)).await;
    if warehouse.is_away {
        return Err(std::io::Error::other("503").into());
    }
    ctx.emit(&Reserved { order })?;
    Ok(order)
}

#[saga_compensation]
async fn release(_ctx: &StepContext, _order: u32, _reserved: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation, timeout = "1m")]
async fn deliver(_ctx: &StepContext, order: u32) -> Result<u32, StepError> {
    sleep(Duration::from_secs(30)).await;
    Ok(order)
}

fn delivery() -> Saga<MemoryStore, u32> {
    Saga::named("delivery").input::<u32>().step::<reserve>().step::<deliver>().build().unwrap()
}

/// What the subscriber was told.
#[derive(Clone, Default)]
struct News(Arc<Mutex<Vec<u32>>>);

#[saga_step(no_compensation)]
async fn hear(_tx: &mut MemoryConn, reserved: Reserved, State(news): State<News>) -> Result<(), StepError> {
    news.0.lock().unwrap().push(reserved.order);
    Ok(())
}

async fn process(
    store: &MemoryStore,
    way: &Way,
    transport: &MemoryTransport,
    warehouse: Warehouse,
) -> Runtime<MemoryStore> {
    let store = store.clone().with_commit_hook(Arc::new(way.clone()));
    Runtime::builder(store).transport(transport.clone()).saga(&delivery()).state(warehouse).start().await.unwrap()
}

/// A process is cut off while it calls a step, and another one calls it in vain. An operator skips the step. Then the first
/// process comes back: the step is done, and the saga goes forward, so subscribers are told.
#[tokio::test(start_paused = true)]
async fn a_skipped_step_that_was_done_after_all_emits_its_events() {
    let (store, way, transport, news) = (MemoryStore::new(), Way::default(), MemoryTransport::new(), News::default());
    let board = Service::named("board").on_topic::<Reserved>("delivery").run::<hear>().build().unwrap();
    let board = Runtime::builder(MemoryStore::new()).transport(transport.clone()).service(&board).state(news.clone());
    let board = board.start().await.unwrap();
    let first = process(&store, &way, &transport, Warehouse { is_away: false }).await;
    let started = first.start(&delivery(), "order-7", 7).await.unwrap();
    sleep(Duration::from_millis(500)).await;
    way.cut();
    let second = process(&store, &Way::default(), &transport, Warehouse { is_away: true }).await;
    sleep(Duration::from_secs(20)).await;
    let stuck = second.status("order-7").await.unwrap().unwrap();
    second.admin().control("order-7").at_revision(stuck.revision).skip_with(&1_u32, "looked it up").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    way.mend();

    let outcome = started.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    sleep(Duration::from_mins(1)).await;
    assert_eq!(*news.0.lock().unwrap(), [7]);
    first.shutdown().await;
    second.shutdown().await;
    board.shutdown().await;
}
