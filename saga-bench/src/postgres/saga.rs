//! The contender: the same work as a saga on the engine and the PostgreSQL store, as users write it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, ensure};
use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use tokio::task::JoinSet;

use super::workload::STEPS_PER_SAGA;
use crate::clock::Stopwatch;

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
    let runtime = Arc::new(builder.start().await?);
    let next = Arc::new(AtomicU32::new(0));

    let watch = Stopwatch::started();
    let mut callers = JoinSet::new();
    for _ in 0..in_flight {
        callers.spawn(call(Arc::clone(&runtime), create_order.clone(), Arc::clone(&next), sagas));
    }
    while let Some(caller) = callers.join_next().await {
        caller.context("a caller panicked")??;
    }
    let took = watch.elapsed();
    runtime.shutdown().await;
    Ok(f64::from(sagas * STEPS_PER_SAGA) / took.as_secs_f64())
}

/// One of the callers: it starts the next saga when the one before has ended.
async fn call(
    runtime: Arc<Runtime<PostgresStore>>,
    create_order: Saga<PostgresStore, Order>,
    next: Arc<AtomicU32>,
    sagas: u32,
) -> Result<()> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= sagas {
            return Ok(());
        }
        let order = Order { number: i64::from(number), amount: 100 + i64::from(number % 10_000) };
        let running = runtime.start(&create_order, format!("order-{number}"), order).await?;
        let outcome = running.outcome().await?;
        ensure!(matches!(outcome, Outcome::Completed { .. }), "order {number} ended as {outcome}");
    }
}
