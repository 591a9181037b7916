//! The order: stock is reserved, the card charged, the order confirmed.

use saga_core::{Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

/// What is ordered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: i64,
    pub(crate) amount: i64,
}

/// The order with this number.
pub(crate) fn order(number: u32) -> Order {
    Order { number: i64::from(number), amount: 100 + i64::from(number % 10_000) }
}

/// Does the business part of a step: its one write.
pub(super) async fn insert(tx: &mut PgConnection, sql: &'static str, order: &Order) -> Result<(), StepError> {
    sqlx::query(sql).bind(order.number).bind(order.amount).execute(tx).await?;
    Ok(())
}

#[saga_step(no_compensation)]
pub(super) async fn reserve_stock(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO reservations (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

#[saga_step(no_compensation)]
pub(super) async fn charge_card(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO payments (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

#[saga_step(no_compensation)]
pub(super) async fn confirm_order(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO confirmations (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

pub(crate) fn saga() -> anyhow::Result<Saga<PostgresStore, Order>> {
    let saga = Saga::named("create-order").input::<Order>();
    Ok(saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order>().build()?)
}
