//! The contender: the same work as a saga on the engine and the PostgreSQL store, as users write it.

use anyhow::Result;
use saga_core::{Runtime, Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::workload::STEPS_PER_SAGA;
use crate::drive::drive;

/// What is ordered.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    number: i64,
    amount: i64,
}

/// Does the business part of a step: its one write.
async fn insert(tx: &mut PgConnection, sql: &'static str, order: &Order) -> Result<(), StepError> {
    sqlx::query(sql).bind(order.number).bind(order.amount).execute(tx).await?;
    Ok(())
}

#[saga_step(no_compensation)]
async fn reserve_stock(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO reservations (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

#[saga_step(no_compensation)]
async fn charge_card(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO payments (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

#[saga_step(no_compensation)]
async fn confirm_order(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO confirmations (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

/// Runs `sagas` sagas, `in_flight` at a time, and returns the steps a second, from the first start to the last outcome.
/// Each step has a commit of its own, or shares it with its batch, where `run_on_max` is 1.
pub(crate) async fn run(url: &str, sagas: u32, in_flight: u32, run_on_max: Option<usize>) -> Result<f64> {
    let create_order: Saga<PostgresStore, Order> = Saga::named("create-order")
        .input::<Order>()
        .step::<reserve_stock>()
        .step::<charge_card>()
        .step::<confirm_order>()
        .build()?;
    let builder = Runtime::builder(PostgresStore::connect(url).await?).saga(&create_order);
    let builder = builder.settings(|settings| settings.run_on_max = run_on_max.unwrap_or(settings.run_on_max));
    let runtime = builder.start().await?;
    let order = |number| Order { number: i64::from(number), amount: 100 + i64::from(number % 10_000) };
    let took = drive(&runtime, &create_order, sagas, in_flight, order).await?;
    runtime.shutdown().await;
    Ok(f64::from(sagas * STEPS_PER_SAGA) / took.as_secs_f64())
}
