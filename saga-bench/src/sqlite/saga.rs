//! The contender: the same work as a saga on the engine and the SQLite store, as users write it.

use std::path::Path;

use anyhow::Result;
use rusqlite::Connection;
use saga_core::{Runtime, Saga, StepError, saga_step};
use saga_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};

use super::file::assert_rows;
use super::workload::{STEPS, STEPS_PER_SAGA, amount};
use crate::drive::drive;

/// What is ordered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: u32,
    amount: u32,
}

#[saga_step(no_compensation)]
async fn reserve_stock(tx: &mut Connection, order: Order) -> Result<Order, StepError> {
    STEPS[0].write_business_row(tx, order.number)?;
    Ok(order)
}

#[saga_step(no_compensation)]
async fn charge_card(tx: &mut Connection, order: Order) -> Result<Order, StepError> {
    STEPS[1].write_business_row(tx, order.number)?;
    Ok(order)
}

#[saga_step(no_compensation)]
async fn confirm_order(tx: &mut Connection, order: Order) -> Result<Order, StepError> {
    STEPS[2].write_business_row(tx, order.number)?;
    Ok(order)
}

/// Runs `sagas` sagas on a new file, `in_flight` at a time, and returns the steps a second, from the first start to the last outcome.
pub(crate) async fn run(
    file: &Path,
    create_order: &Saga<SqliteStore, Order>,
    sagas: u32,
    in_flight: u32,
) -> Result<f64> {
    let store = SqliteStore::open(file).await?;
    let runtime = Runtime::builder(store).saga(create_order).start().await?;
    let order = |number| Order { number, amount: amount(number) };
    let took = drive(&runtime, create_order, sagas, in_flight, order).await?;
    runtime.shutdown().await;
    drop(runtime);
    assert_rows(file, sagas)?;
    Ok(f64::from(sagas * STEPS_PER_SAGA) / took.as_secs_f64())
}

pub(crate) fn create_order() -> Result<Saga<SqliteStore, Order>> {
    let saga = Saga::named("create-order").input::<Order>();
    Ok(saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order>().build()?)
}
