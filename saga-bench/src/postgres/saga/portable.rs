//! The order whose steps take any database that `saga-sql` knows.

use saga_core::{Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use saga_sql::SqlConn;

use super::orders::Order;

#[saga_step(no_compensation, name = "reserve-stock")]
async fn reserve_by_sql(tx: &mut impl SqlConn, order: Order) -> Result<Order, StepError> {
    let sql = "INSERT INTO reservations (order_id, amount) VALUES ($1, $2)";
    tx.execute(sql, &[&order.number, &order.amount]).await?;
    Ok(order)
}

#[saga_step(no_compensation, name = "charge-card")]
async fn charge_by_sql(tx: &mut impl SqlConn, order: Order) -> Result<Order, StepError> {
    let sql = "INSERT INTO payments (order_id, amount) VALUES ($1, $2)";
    tx.execute(sql, &[&order.number, &order.amount]).await?;
    Ok(order)
}

#[saga_step(no_compensation, name = "confirm-order")]
async fn confirm_by_sql(tx: &mut impl SqlConn, order: Order) -> Result<Order, StepError> {
    let sql = "INSERT INTO confirmations (order_id, amount) VALUES ($1, $2)";
    tx.execute(sql, &[&order.number, &order.amount]).await?;
    Ok(order)
}

pub(super) fn saga() -> anyhow::Result<Saga<PostgresStore, Order>> {
    let saga = Saga::named("portable-order").input::<Order>();
    Ok(saga.step::<reserve_by_sql>().step::<charge_by_sql>().step::<confirm_by_sql>().build()?)
}
