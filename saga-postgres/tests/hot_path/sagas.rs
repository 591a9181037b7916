//! Whole sagas through the runtime, on a store of one connection.

use saga_core::{Saga, Settings, StepError, saga_step};
use saga_postgres::PostgresStore;
use saga_testkit::hot_path::{Bound, Cost as _, WholeSagas, assert_sagas_within};
use sqlx::PgConnection;

use crate::cost::Cost;
use crate::meter::Meter;

/// Sagas in flight.
pub(crate) const IN_FLIGHT: u32 = 50;
/// So many times all of them, so that a batch that is not full shows.
pub(crate) const ROUNDS: u32 = 4;

#[saga_step(no_compensation)]
pub(crate) async fn reserve_stock(tx: &mut PgConnection, order: i64) -> Result<i64, StepError> {
    insert(tx, "INSERT INTO reservations (amount) VALUES ($1)", order).await
}

#[saga_step(no_compensation)]
pub(crate) async fn charge_card(tx: &mut PgConnection, order: i64) -> Result<i64, StepError> {
    insert(tx, "INSERT INTO payments (amount) VALUES ($1)", order).await
}

#[saga_step(no_compensation)]
pub(crate) async fn confirm_order(tx: &mut PgConnection, order: i64) -> Result<i64, StepError> {
    insert(tx, "INSERT INTO confirmations (amount) VALUES ($1)", order).await
}

pub(crate) async fn insert(tx: &mut PgConnection, sql: &'static str, order: i64) -> Result<i64, StepError> {
    sqlx::query(sql).bind(order).execute(tx).await?;
    Ok(order)
}

/// What a batch of whole sagas costs.
///
/// - Of the batch: what one of steps costs, and more room for pages.
/// - Of a saga: a statement for each of its three steps. In the log: two records of each business row and its key, two of
///   each step record and its key; its row with its two keys; its progress with its key.
pub(crate) const BATCH: Bound<Cost> = Bound {
    batch: Cost { commits: 1, statements: 13, round_trips: 4, wal_records: 25 },
    each: Cost { commits: 0, statements: 3, round_trips: 3, wal_records: 17 },
    together: None,
};

/// A block of ids, fetched by a statement of its own. It lasts for two thousand sagas.
pub(crate) const IDS: Cost = Cost { commits: 1, statements: 14, round_trips: 5, wal_records: 5 };

#[tokio::test]
async fn sagas_that_run_together_cost_no_more_than_this() {
    assert_sagas_within(&bound(), async || cost(true, |_| ()).await).await;
}

/// The bound is exceeded where each step has a commit of its own, and where each saga has.
#[tokio::test]
async fn a_heavier_path_is_above_the_bound() {
    let all = ["commits", "statements", "round trips", "WAL records"];
    assert_eq!(cost(false, |settings| settings.steps_per_transaction_max = 1).await.above(&bound()), all);
    assert_eq!(cost(false, |settings| settings.batch_max = 1).await.above(&bound()), all);
}

fn bound() -> Cost {
    bound_of(BATCH)
}

/// What the sagas may cost, in such batches.
pub(crate) fn bound_of(batch: Bound<Cost>) -> Cost {
    bound_of_rounds(batch, ROUNDS)
}

/// What so many rounds of sagas may cost.
pub(crate) fn bound_of_rounds(batch: Bound<Cost>, rounds: u32) -> Cost {
    batch.of(u64::from(IN_FLIGHT)) * u64::from(rounds) + IDS
}

/// Runs the sagas, and answers what they cost, where their steps need no savepoints or nobody waits for that.
async fn cost(is_spared: bool, change: impl FnOnce(&mut Settings)) -> Cost {
    cost_when(is_spared, create_order(), change).await
}

/// The same for other sagas, whose steps need no savepoints.
pub(crate) async fn cost_of(saga: Saga<PostgresStore, i64>, change: impl FnOnce(&mut Settings)) -> Cost {
    cost_when(true, saga, change).await
}

async fn cost_when(is_spared: bool, saga: Saga<PostgresStore, i64>, change: impl FnOnce(&mut Settings)) -> Cost {
    let mut meter = Meter::start().await;
    let store = store(&meter).await;
    let mut sagas = WholeSagas::begin(store.clone(), saga, IN_FLIGHT, change).await;
    if is_spared {
        sagas.until_spared().await;
    }
    let cost = meter.of(&store, sagas.rounds(ROUNDS)).await;
    sagas.shutdown().await;
    cost
}

/// The same for one saga of each of so many tenants.
pub(crate) async fn cost_of_tenants(tenants: u32, change: impl FnOnce(&mut Settings)) -> Cost {
    let mut meter = Meter::start().await;
    let store = store(&meter).await;
    let mut sagas = WholeSagas::of_tenants(tenants, store.clone(), create_order(), IN_FLIGHT, change).await;
    sagas.until_spared().await;
    let cost = meter.of(&store, sagas.rounds(tenants / IN_FLIGHT)).await;
    sagas.shutdown().await;
    cost
}

async fn store(meter: &Meter) -> PostgresStore {
    meter.store(|options| options.batch_max(IN_FLIGHT as usize)).await
}

fn create_order() -> Saga<PostgresStore, i64> {
    let saga = Saga::named("create-order").input::<i64>();
    saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order>().build().unwrap()
}
