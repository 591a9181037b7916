//! Whole sagas, each of whose steps locks something of its own.

use saga_core::{Entity, Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use saga_testkit::hot_path::{Bound, Cost as _, assert_sagas_within};
use sqlx::PgConnection;

use crate::cost::Cost;
use crate::sagas::{self as unlocked, BATCH, bound_of, cost_of, insert};

#[saga_step(no_compensation, lock = |order| Entity::new("stock", order))]
async fn reserve_stock(tx: &mut PgConnection, order: i64) -> Result<i64, StepError> {
    insert(tx, "INSERT INTO reservations (amount) VALUES ($1)", order).await
}

#[saga_step(no_compensation, lock = |order| Entity::new("card", order))]
async fn charge_card(tx: &mut PgConnection, order: i64) -> Result<i64, StepError> {
    insert(tx, "INSERT INTO payments (amount) VALUES ($1)", order).await
}

#[saga_step(no_compensation, lock = |order| Entity::new("order", order))]
async fn confirm_order(tx: &mut PgConnection, order: i64) -> Result<i64, StepError> {
    insert(tx, "INSERT INTO confirmations (amount) VALUES ($1)", order).await
}

/// The cost of a batch whose steps lock free entities: that of a batch without locks, and one statement that takes all locks. The
/// log has one record for every 32 tokens.
const LOCKED: Bound<Cost> = Bound {
    batch: Cost {
        statements: BATCH.batch.statements + 1,
        round_trips: BATCH.batch.round_trips + 1,
        wal_records: BATCH.batch.wal_records + 2,
        ..BATCH.batch
    },
    together: Some((10, Cost { commits: 0, statements: 0, round_trips: 0, wal_records: 1 })),
    ..BATCH
};

#[tokio::test]
async fn sagas_whose_steps_lock_cost_a_statement_more_for_all_of_them() {
    let bound = bound_of(LOCKED);
    assert_sagas_within(&bound, async || cost_of(locked_order(), |_| ()).await).await;
}

/// The bound is exceeded where a commit of its own grants the lock of a step, as it does when another step has the entity.
#[tokio::test]
async fn locks_that_are_asked_for_are_above_the_bound() {
    let cost = cost_of(locked_order(), |settings| settings.steps_per_transaction_max = 1).await;
    assert_eq!(cost.above(&bound_of(LOCKED)), ["commits", "statements", "round trips", "WAL records"]);
}

/// Ten sagas about each of five entities.
const ENTITIES: i64 = 5;

#[saga_step(no_compensation, name = "reserve-stock", lock = |order| Entity::new("stock", order % ENTITIES))]
async fn reserve_shared(tx: &mut PgConnection, order: i64) -> Result<i64, StepError> {
    insert(tx, "INSERT INTO reservations (amount) VALUES ($1)", order).await
}

/// Sagas about the same entity cost what sagas about different ones cost: they share a transaction, and its locks.
#[tokio::test]
async fn sagas_that_lock_the_same_entities_share_a_transaction() {
    let bound = bound_of(LOCKED);
    let saga = Saga::named("shared-order").input::<i64>();
    let saga = saga.step::<reserve_shared>().step::<unlocked::charge_card>().step::<unlocked::confirm_order>();
    let saga = saga.build().unwrap();
    assert_sagas_within(&bound, async || cost_of(saga.clone(), |_| ()).await).await;
}

fn locked_order() -> Saga<PostgresStore, i64> {
    let saga = Saga::named("locked-order").input::<i64>();
    saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order>().build().unwrap()
}
