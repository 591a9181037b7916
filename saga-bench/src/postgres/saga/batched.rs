//! The order whose steps take a batch: one INSERT for all orders that are at that step.

use saga_core::{Batch, BatchResults, Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use sqlx::PgConnection;

use super::orders::Order;

async fn insert_all(tx: &mut PgConnection, sql: &'static str, orders: &Batch<Order>) -> Result<(), StepError> {
    let (numbers, amounts): (Vec<i64>, Vec<i64>) = orders.iter().map(|order| (order.number, order.amount)).unzip();
    sqlx::query(sql).bind(numbers).bind(amounts).execute(tx).await?;
    Ok(())
}

#[saga_step(no_compensation, name = "reserve-stock")]
async fn reserve_all(tx: &mut PgConnection, orders: Batch<Order>) -> Result<BatchResults<Order>, StepError> {
    let sql = "INSERT INTO reservations (order_id, amount) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
    insert_all(tx, sql, &orders).await?;
    Ok(orders.map_each(Order::clone))
}

#[saga_step(no_compensation, name = "charge-card")]
async fn charge_all(tx: &mut PgConnection, orders: Batch<Order>) -> Result<BatchResults<Order>, StepError> {
    let sql = "INSERT INTO payments (order_id, amount) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
    insert_all(tx, sql, &orders).await?;
    Ok(orders.map_each(Order::clone))
}

#[saga_step(no_compensation, name = "confirm-order")]
async fn confirm_all(tx: &mut PgConnection, orders: Batch<Order>) -> Result<BatchResults<Order>, StepError> {
    let sql = "INSERT INTO confirmations (order_id, amount) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
    insert_all(tx, sql, &orders).await?;
    Ok(orders.map_each(Order::clone))
}

pub(super) fn saga() -> anyhow::Result<Saga<PostgresStore, Order>> {
    let saga = Saga::named("order-in-batches").input::<Order>();
    Ok(saga.step::<reserve_all>().step::<charge_all>().step::<confirm_all>().build()?)
}
