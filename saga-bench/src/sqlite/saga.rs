//! The contender: the same work as a saga on the engine and the SQLite store, as users write it.

use std::path::Path;

use anyhow::Result;
use rusqlite::Connection;
use saga_core::{Runtime, Saga, Settings, StepError, saga_step};
use saga_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};

use super::file::assert_rows;
use super::workload::{STEPS, STEPS_PER_SAGA, amount};
use crate::drive::{Expected, drive_to};

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

/// How many tenants there are, and whether they share commits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tenants {
    pub(crate) count: u32,
    pub(crate) share_commits: bool,
}

/// Runs `sagas` sagas on a new file, `in_flight` at a time, and returns the steps a second, from the first start to the last outcome.
pub(crate) async fn run(
    file: &Path,
    create_order: &Saga<SqliteStore, Order>,
    sagas: u32,
    in_flight: u32,
    tenants: Option<Tenants>,
) -> Result<f64> {
    let store = SqliteStore::open(file).await?;
    let share = |settings: &mut Settings| {
        settings.tenants_share_commits = tenants.is_some_and(|tenants| tenants.share_commits);
    };
    let runtime = Runtime::builder(store).saga(create_order).settings(share).start().await?;
    let order = |number| Order { number, amount: amount(number) };
    let (count, completed) = (tenants.map(|tenants| tenants.count), |_| Expected::Completed);
    let took = drive_to(std::slice::from_ref(&runtime), create_order, 0..sagas, in_flight, count, order, completed)
        .await?
        .took;
    runtime.shutdown().await;
    drop(runtime);
    assert_rows(file, sagas)?;
    Ok(f64::from(sagas * STEPS_PER_SAGA) / took.as_secs_f64())
}

pub(crate) fn create_order() -> Result<Saga<SqliteStore, Order>> {
    let saga = Saga::named("create-order").input::<Order>();
    Ok(saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order>().build()?)
}
