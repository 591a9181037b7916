//! The order each of whose steps updates one of few rows that all orders share.

use saga_core::{Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use sqlx::PgConnection;

use super::orders::Order;
use crate::postgres::workload::hot_row;

async fn update(tx: &mut PgConnection, order: &Order, step: i64) -> Result<(), StepError> {
    let row = hot_row(order.number, step);
    sqlx::query("UPDATE hot SET amount = amount + 1 WHERE id = $1").bind(row).execute(tx).await?;
    Ok(())
}

#[saga_step(no_compensation)]
async fn update_first(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    update(tx, &order, 0).await?;
    Ok(order)
}

#[saga_step(no_compensation)]
async fn update_second(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    update(tx, &order, 1).await?;
    Ok(order)
}

#[saga_step(no_compensation)]
async fn update_third(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    update(tx, &order, 2).await?;
    Ok(order)
}

pub(super) fn saga() -> anyhow::Result<Saga<PostgresStore, Order>> {
    let saga = Saga::named("hot-order").input::<Order>();
    Ok(saga.step::<update_first>().step::<update_second>().step::<update_third>().build()?)
}
