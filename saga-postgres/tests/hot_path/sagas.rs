//! Whole sagas through the runtime, on a store of one connection and with one transaction under way at a time: the
//! callers wait for each other, so that the batches are the same in every run.

use std::time::Duration;

use saga_core::{Outcome, Runtime, Saga, Settings, StepError, saga_step};
use saga_postgres::PostgresStore;
use sqlx::PgConnection;
use tokio::task::JoinSet;

use crate::cost::{Bound, Cost};
use crate::meter::Meter;

/// Nothing of the runtime's own falls into what is measured.
const QUIET: Duration = Duration::from_hours(6);
/// Sagas in flight.
const IN_FLIGHT: u32 = 50;
/// So many times all of them, so that a batch that is not full shows.
const ROUNDS: u32 = 4;

#[saga_step(no_compensation)]
async fn reserve_stock(tx: &mut PgConnection, order: i64) -> Result<i64, StepError> {
    insert(tx, "INSERT INTO reservations (amount) VALUES ($1)", order).await
}

#[saga_step(no_compensation)]
async fn charge_card(tx: &mut PgConnection, order: i64) -> Result<i64, StepError> {
    insert(tx, "INSERT INTO payments (amount) VALUES ($1)", order).await
}

#[saga_step(no_compensation)]
async fn confirm_order(tx: &mut PgConnection, order: i64) -> Result<i64, StepError> {
    insert(tx, "INSERT INTO confirmations (amount) VALUES ($1)", order).await
}

async fn insert(tx: &mut PgConnection, sql: &'static str, order: i64) -> Result<i64, StepError> {
    sqlx::query(sql).bind(order).execute(tx).await?;
    Ok(order)
}

/// What a batch of whole sagas costs.
///
/// - Of the batch: what one of steps costs, and more room for pages.
/// - Of a saga: a statement for each of its three steps. In the log: two records of each business row and its key, two of
///   each step record and its key; its row with its two keys; its progress with its key.
const BATCH: Bound = Bound {
    batch: Cost { commits: 1, statements: 13, round_trips: 4, wal_records: 25 },
    each: Cost { commits: 0, statements: 3, round_trips: 3, wal_records: 17 },
};

/// A block of ids, fetched by a statement of its own. It lasts for two thousand sagas.
const IDS: Cost = Cost { commits: 1, statements: 14, round_trips: 5, wal_records: 5 };

#[tokio::test]
async fn sagas_that_run_together_cost_no_more_than_this() {
    cost(|_| ()).await.assert_within(&bound(), "sagas");
}

/// The bound is exceeded where each step has a commit of its own, and where each saga has.
#[tokio::test]
async fn a_heavier_path_is_above_the_bound() {
    let all = ["commits", "statements", "round trips", "WAL records"];
    assert_eq!(cost(|settings| settings.run_on_max = 1).await.above(&bound()), all);
    assert_eq!(cost(|settings| settings.batch_max = 1).await.above(&bound()), all);
}

fn bound() -> Cost {
    BATCH.of(u64::from(IN_FLIGHT)) * u64::from(ROUNDS) + IDS
}

/// Runs the sagas, and answers what they cost after the first of them.
async fn cost(change: impl FnOnce(&mut Settings)) -> Cost {
    let mut meter = Meter::start().await;
    let store = meter.store(|options| options.trusted_after(1).batch_max(IN_FLIGHT as usize)).await;
    let saga: Saga<PostgresStore, i64> = Saga::named("create-order")
        .input::<i64>()
        .step::<reserve_stock>()
        .step::<charge_card>()
        .step::<confirm_order>()
        .build()
        .unwrap();
    let builder = Runtime::builder(store).saga(&saga).settings(|settings| {
        (settings.transactions, settings.batch_max) = (1, IN_FLIGHT as usize);
        (settings.poll_interval, settings.answer_within) = (QUIET, QUIET);
        (settings.member_ttl, settings.lease_ttl) = (3 * QUIET, 3 * QUIET);
        change(settings);
    });
    let runtime = builder.start().await.unwrap();
    // The session has everything prepared, the steps are trusted, and a first step is known to be quick.
    run(&runtime, &saga, 0..2, 1).await;
    run(&runtime, &saga, 2..2 + IN_FLIGHT, IN_FLIGHT).await;
    let cost = meter.of(runtime.store(), run(&runtime, &saga, 1_000..1_000 + ROUNDS * IN_FLIGHT, IN_FLIGHT)).await;
    runtime.shutdown().await;
    cost
}

/// Brings the orders to their end, so many at a time.
async fn run(
    runtime: &Runtime<PostgresStore>,
    saga: &Saga<PostgresStore, i64>,
    orders: std::ops::Range<u32>,
    at_a_time: u32,
) {
    let orders: Vec<u32> = orders.collect();
    for orders in orders.chunks(at_a_time as usize) {
        let mut callers = JoinSet::new();
        for order in orders.iter().copied() {
            let (runtime, saga) = (runtime.clone(), saga.clone());
            callers.spawn(async move {
                let running = runtime.start(&saga, format!("order-{order}"), i64::from(order)).await.unwrap();
                assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
            });
        }
        callers.join_all().await;
    }
}
