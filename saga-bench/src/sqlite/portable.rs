//! The contender's steps as they are written for any database that `saga-sql` knows.

use anyhow::Result;
use saga_core::{Saga, StepError, saga_step};
use saga_sql::SqlConn;
use saga_sqlite::SqliteStore;

use super::saga::Order;
use super::workload::STEPS;

#[saga_step(no_compensation, name = "reserve-stock")]
async fn reserve_by_sql(tx: &mut impl SqlConn, order: Order) -> Result<Order, StepError> {
    STEPS[0].write_business_row_by_sql(tx, order.number).await?;
    Ok(order)
}

#[saga_step(no_compensation, name = "charge-card")]
async fn charge_by_sql(tx: &mut impl SqlConn, order: Order) -> Result<Order, StepError> {
    STEPS[1].write_business_row_by_sql(tx, order.number).await?;
    Ok(order)
}

#[saga_step(no_compensation, name = "confirm-order")]
async fn confirm_by_sql(tx: &mut impl SqlConn, order: Order) -> Result<Order, StepError> {
    STEPS[2].write_business_row_by_sql(tx, order.number).await?;
    Ok(order)
}

pub(crate) fn create_order() -> Result<Saga<SqliteStore, Order>> {
    let saga = Saga::named("portable-order").input::<Order>();
    Ok(saga.step::<reserve_by_sql>().step::<charge_by_sql>().step::<confirm_by_sql>().build()?)
}
