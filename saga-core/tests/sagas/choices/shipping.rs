//! An order that is packed, or goes by courier, or neither.

use saga_core::engine::SagaStatus;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::{Branch, SagaBuilder};
use saga_core::{Outcome, Output, Runtime, Saga, StepContext, StepError, saga_compensation, saga_step};

#[saga_step(compensate = unreserve)]
pub(super) async fn reserve(tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    tx.log(format!("reserve {order}"));
    Ok(order / 2)
}

#[saga_compensation]
pub(super) async fn unreserve(tx: &mut MemoryConn, order: u32, _reserved: u32) -> Result<(), StepError> {
    tx.log(format!("unreserve {order}"));
    Ok(())
}

/// In a transaction.
#[saga_step(compensate = unpack)]
pub(super) async fn pack(tx: &mut MemoryConn, order: u32) -> Result<String, StepError> {
    tx.log(format!("pack {order}"));
    Ok(format!("box {order}"))
}

#[saga_compensation]
pub(super) async fn unpack(tx: &mut MemoryConn, order: u32, packed: String) -> Result<(), StepError> {
    tx.log(format!("unpack {order}, {packed}"));
    Ok(())
}

/// Outside any transaction.
#[saga_step(no_compensation)]
pub(super) async fn call_courier(_ctx: &StepContext, order: u32) -> Result<u32, StepError> {
    Ok(order + 1)
}

#[saga_step(compensate = unlabel)]
pub(super) async fn label(tx: &mut MemoryConn, packed: String) -> Result<(), StepError> {
    tx.log(format!("label {packed}"));
    Ok(())
}

#[saga_compensation]
pub(super) async fn unlabel(tx: &mut MemoryConn, packed: String, _labelled: ()) -> Result<(), StepError> {
    tx.log(format!("unlabel {packed}"));
    Ok(())
}

#[saga_step(compensate = unbill)]
pub(super) async fn bill(
    tx: &mut MemoryConn,
    order: u32,
    packed: Option<Output<pack>>,
    ride: Option<Output<call_courier>>,
) -> Result<(), StepError> {
    let (packed, ride) = (packed.map(|Output(packed)| packed), ride.map(|Output(ride)| ride));
    tx.log(format!("bill {order}, {packed:?}, {ride:?}"));
    if order % 10 == 7 { Err(StepError::reject("the card is declined")) } else { Ok(()) }
}

#[saga_compensation]
pub(super) async fn unbill(_tx: &mut MemoryConn, _order: u32, _billed: ()) -> Result<(), StepError> {
    Ok(())
}

pub(super) fn new() -> SagaBuilder<MemoryStore, u32> {
    Saga::named("ship").input::<u32>()
}

/// Orders from 100 on are packed and labelled. Orders with more than 20 reserved pieces go by courier.
pub(super) fn shipping() -> Saga<MemoryStore, u32> {
    new()
        .step::<reserve>()
        .choose("shipping", |choice| {
            choice
                .when(
                    "parcel",
                    |order: &u32| *order >= 100,
                    |branch| {
                        branch.step::<pack>().step_from::<label, _>(|_: &u32, Output(packed): Output<pack>| packed)
                    },
                )
                .when(
                    "express",
                    |_: &u32, Output(reserved): Output<reserve>| reserved > 20,
                    Branch::step::<call_courier>,
                )
        })
        .step::<bill>()
        .build()
        .unwrap()
}

pub(super) async fn runtime(store: &MemoryStore, saga: &Saga<MemoryStore, u32>) -> Runtime<MemoryStore> {
    Runtime::builder(store.clone()).saga(saga).start().await.unwrap()
}

pub(super) async fn run(saga: &Saga<MemoryStore, u32>, order: u32) -> (Vec<String>, Outcome, SagaStatus) {
    let store = MemoryStore::new();
    let runtime = runtime(&store, saga).await;
    let outcome = runtime.start(saga, "o-1", order).await.unwrap().outcome().await.unwrap();
    let status = runtime.status("o-1").await.unwrap().unwrap();
    runtime.shutdown().await;
    (log(&store), outcome, status)
}

pub(super) fn log(store: &MemoryStore) -> Vec<String> {
    store.read(|table| table.log().iter().map(|entry| String::from_utf8(entry.clone()).unwrap()).collect())
}
