//! The order that may be refused at its last step; what was done is undone by an INSERT each.

use saga_core::{Saga, StepError, saga_compensation, saga_step};
use saga_postgres::PostgresStore;
use sqlx::PgConnection;

use super::orders::{Order, insert};
use crate::postgres::workload::is_refused;

#[saga_step(compensate = release_stock, name = "reserve-stock")]
async fn reserve_to_release(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO reservations (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

#[saga_compensation]
async fn release_stock(tx: &mut PgConnection, order: Order, _reserved: Order) -> Result<(), StepError> {
    insert(tx, "INSERT INTO releases (order_id, amount) VALUES ($1, $2)", &order).await
}

#[saga_step(compensate = refund_card, name = "charge-card")]
async fn charge_to_refund(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO payments (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

#[saga_compensation]
async fn refund_card(tx: &mut PgConnection, order: Order, _charged: Order) -> Result<(), StepError> {
    insert(tx, "INSERT INTO refunds (order_id, amount) VALUES ($1, $2)", &order).await
}

#[saga_step(no_compensation, name = "confirm-order")]
async fn confirm_or_refuse(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    if u32::try_from(order.number).is_ok_and(is_refused) {
        return Err(StepError::reject("the order cannot be delivered"));
    }
    insert(tx, "INSERT INTO confirmations (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

pub(super) fn saga() -> anyhow::Result<Saga<PostgresStore, Order>> {
    let saga = Saga::named("refuse-order").input::<Order>();
    Ok(saga.step::<reserve_to_release>().step::<charge_to_refund>().step::<confirm_or_refuse>().build()?)
}
