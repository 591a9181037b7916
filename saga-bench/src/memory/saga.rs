//! The contender: the same functions as the steps of a saga, as users write them.

use std::time::Duration;

use anyhow::{Result, ensure};
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Runtime, Saga, StepError, saga_step};

use super::work::{self, Order, STEPS_PER_SAGA, order};
use crate::drive::drive;

#[saga_step(no_compensation)]
async fn reserve_stock(_tx: &mut MemoryConn, order: Order) -> Result<u32, StepError> {
    Ok(work::reserve(order).await)
}

#[saga_step(no_compensation)]
async fn charge_card(_tx: &mut MemoryConn, order: Order) -> Result<u32, StepError> {
    Ok(work::charge(order).await)
}

#[saga_step(no_compensation)]
async fn confirm_order(_tx: &mut MemoryConn, order: Order) -> Result<u32, StepError> {
    Ok(work::confirm(order).await)
}

/// Runs `sagas` sagas on a new store, so many at a time.
pub(super) async fn run(sagas: u32, in_flight: u32) -> Result<Duration> {
    let saga: Saga<MemoryStore, Order> = Saga::named("create-order")
        .input::<Order>()
        .step::<reserve_stock>()
        .step::<charge_card>()
        .step::<confirm_order>()
        .build()?;
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await?;
    let took = drive(&runtime, &saga, sagas, in_flight, order).await?;
    let steps = runtime.statistics().steps;
    ensure!(steps == u64::from(sagas * STEPS_PER_SAGA), "{steps} steps were done for {sagas} sagas");
    runtime.shutdown().await;
    Ok(took)
}
