//! A shop whose sagas have versions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use saga_core::StepPhase;
use saga_core::engine::SagaStatus;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Output, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use tokio::sync::{Notify, Semaphore};

/// Whether the card works, who waits until it was tried, and a call that hangs.
#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) is_open: Arc<AtomicBool>,
    pub(crate) rejects: Arc<AtomicBool>,
    pub(crate) was_tried: Arc<Notify>,
    pub(crate) hangs: Arc<Semaphore>,
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self {
            is_open: Arc::default(),
            rejects: Arc::default(),
            was_tried: Arc::default(),
            hangs: Arc::new(Semaphore::new(0)),
        }
    }
}

#[saga_step(compensate = put_back)]
pub(crate) async fn take_stock(conn: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    conn.add("taken", 1)?;
    Ok(order)
}

#[saga_compensation]
pub(crate) async fn put_back(conn: &mut MemoryConn, _order: u32, taken: u32) -> Result<(), StepError> {
    conn.add("taken", -1)?;
    conn.put("put back", taken.to_be_bytes())?;
    Ok(())
}

/// What `take_stock` is in the second version: another name, and more that it returns.
#[saga_step(compensate = release_stock)]
pub(crate) async fn reserve_stock(conn: &mut MemoryConn, order: u32) -> Result<(u32, String), StepError> {
    conn.add("taken", 1)?;
    Ok((order, "shelf".to_owned()))
}

#[saga_compensation]
pub(crate) async fn release_stock(
    conn: &mut MemoryConn,
    _order: u32,
    reserved: (u32, String),
) -> Result<(), StepError> {
    conn.add("taken", -1)?;
    conn.put("released", reserved.1.as_bytes())?;
    Ok(())
}

#[saga_step(compensate = refund, retry(attempts = 1000, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
pub(crate) async fn charge(ctx: &StepContext, order: u32, State(shop): State<Shop>) -> Result<u32, StepError> {
    let _ = ctx;
    shop.was_tried.notify_one();
    if shop.rejects.load(Ordering::SeqCst) {
        return Err(StepError::reject("no money"));
    }
    if shop.is_open.load(Ordering::SeqCst) { Ok(order) } else { Err(StepError::not_sent("closed")) }
}

#[saga_compensation]
pub(crate) async fn refund(ctx: &StepContext, _order: u32) -> Result<(), StepError> {
    let _ = ctx;
    Ok(())
}

#[saga_step(compensate = refund)]
pub(crate) async fn call(ctx: &StepContext, order: u32, State(shop): State<Shop>) -> Result<u32, StepError> {
    let _ = ctx;
    shop.was_tried.notify_one();
    let _permit = shop.hangs.acquire().await.unwrap();
    Ok(order)
}

#[saga_step]
pub(crate) async fn confirm(conn: &mut MemoryConn, _order: u32) -> Result<(), StepError> {
    conn.add("confirmed", 1)?;
    Ok(())
}

#[saga_step(no_compensation)]
pub(crate) async fn weigh(order: u32) -> Result<u32, StepError> {
    Ok(order)
}

#[saga_step(name = "confirm")]
pub(crate) async fn confirm_by_weight(
    conn: &mut MemoryConn,
    _order: u32,
    Output(weight): Output<weigh>,
) -> Result<(), StepError> {
    conn.add("confirmed", i64::from(weight))?;
    Ok(())
}

#[saga_step(name = "take-stock", compensate = put_back_text)]
pub(crate) async fn take_text(conn: &mut MemoryConn, _order: u32) -> Result<String, StepError> {
    conn.add("taken", 1)?;
    Ok(String::new())
}

#[saga_compensation]
pub(crate) async fn put_back_text(_conn: &mut MemoryConn, _order: u32, _taken: String) -> Result<(), StepError> {
    Ok(())
}

pub(crate) type Buy = Saga<MemoryStore, u32>;

pub(crate) fn v1() -> Buy {
    Saga::named("buy").input().step::<take_stock>().step::<charge>().step::<confirm>().build().unwrap()
}

pub(crate) fn v2() -> Buy {
    let buy = Saga::named("buy").input().version(2);
    buy.step::<reserve_stock>().step::<weigh>().step::<charge>().step::<confirm_by_weight>().build().unwrap()
}

pub(crate) fn v3() -> Buy {
    Saga::named("buy")
        .input()
        .version(3)
        .step::<take_stock>()
        .step::<charge>()
        .step::<weigh>()
        .step::<confirm>()
        .build()
        .unwrap()
}

pub(crate) async fn start(store: &MemoryStore, shop: &Shop, sagas: &[&Buy]) -> Runtime<MemoryStore> {
    let mut builder = Runtime::builder(store.clone()).state(shop.clone());
    for saga in sagas {
        builder = builder.saga(saga);
    }
    builder.start().await.unwrap()
}

pub(crate) async fn status(runtime: &Runtime<MemoryStore>, key: &str) -> SagaStatus {
    runtime.status(key).await.unwrap().unwrap()
}

pub(crate) fn phases(status: &SagaStatus) -> Vec<(&str, StepPhase)> {
    status.steps.iter().map(|step| (step.step.as_str(), step.phase)).collect()
}

/// A store with a saga of the first version whose card is refused again and again, and no process.
pub(crate) async fn left_behind(shop: &Shop) -> MemoryStore {
    let store = MemoryStore::new();
    let runtime = start(&store, shop, &[&v1()]).await;
    runtime.start(&v1(), "k-1", 7).await.unwrap();
    shop.was_tried.notified().await;
    runtime.shutdown().await;
    store
}
