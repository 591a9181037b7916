//! The order each of whose steps updates one of few rows that all orders share.

use saga_core::{Entity, Saga, StepError, saga_step};
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

fn row(order: &Order, step: i64) -> Entity {
    Entity::new("hot", hot_row(order.number, step))
}

#[saga_step(no_compensation, lock = |order| row(order, 0))]
async fn update_first_locked(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    update(tx, &order, 0).await?;
    Ok(order)
}

#[saga_step(no_compensation, lock = |order| row(order, 1))]
async fn update_second_locked(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    update(tx, &order, 1).await?;
    Ok(order)
}

#[saga_step(no_compensation, lock = |order| row(order, 2))]
async fn update_third_locked(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    update(tx, &order, 2).await?;
    Ok(order)
}

pub(super) fn saga() -> anyhow::Result<Saga<PostgresStore, Order>> {
    let saga = Saga::named("hot-order").input::<Order>();
    Ok(saga.step::<update_first>().step::<update_second>().step::<update_third>().build()?)
}

/// Each step locks the entity of its row.
pub(super) fn locked() -> anyhow::Result<Saga<PostgresStore, Order>> {
    let saga = Saga::named("hot-locked-order").input::<Order>();
    Ok(saga.step::<update_first_locked>().step::<update_second_locked>().step::<update_third_locked>().build()?)
}
