//! Batch steps on PostgreSQL: one statement writes for many sagas, and each has what is its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use crate::support::Place;
use saga_core::{Batch, BatchResults, Outcome, Runtime, Saga, State, StepError, saga_compensation, saga_step};
use saga_postgres::PostgresStore;
use serde::{Deserialize, Serialize};
use sqlx::{Executor as _, PgConnection, Row as _};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    id: i64,
    pieces: i64,
}

/// How many pieces bring what kind of trouble.
const BAD_ROW: i64 = -1;
const KILLS: i64 = -2;

/// The calls of `reserve_stock`, and the orders whose trouble was had once.
#[derive(Clone, Default)]
struct Seen {
    calls: Arc<Mutex<Vec<usize>>>,
    once: Arc<Mutex<Vec<i64>>>,
}

impl Seen {
    fn has_trouble(&self, order: &Order, kind: i64) -> bool {
        let mut once = self.once.lock().unwrap();
        let has_trouble = order.pieces == kind && !once.contains(&order.id);
        if has_trouble {
            once.push(order.id);
        }
        has_trouble
    }
}

/// One statement for all.
#[saga_step(compensate = release_stock, retry(attempts = 3, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn reserve_stock(
    tx: &mut PgConnection,
    orders: Batch<Order>,
    State(seen): State<Seen>,
) -> Result<BatchResults<i64>, StepError> {
    seen.calls.lock().unwrap().push(orders.len());
    let ids: Vec<i64> = orders.iter().map(|order| order.id).collect();
    let keys: Vec<&str> = orders.keys().collect();
    // `BAD_ROW` breaks the constraint of the table, in the middle of the statement.
    let pieces: Vec<i64> = orders.iter().map(|order| if order.pieces == KILLS { 1 } else { order.pieces }).collect();
    let sql = "INSERT INTO reservations (id, key, pieces) SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[]) \
         RETURNING id, number";
    let rows = sqlx::query(sql).bind(&ids).bind(&keys).bind(&pieces).fetch_all(&mut *tx).await?;
    let numbers: HashMap<i64, i64> = rows.iter().map(|row| (row.get("id"), row.get("number"))).collect();
    if orders.iter().any(|order| seen.has_trouble(order, KILLS)) {
        tx.execute("SELECT pg_terminate_backend(pg_backend_pid())").await?;
    }
    Ok(orders.map_each(|order| numbers[&order.id]))
}

#[saga_compensation]
async fn release_stock(tx: &mut PgConnection, order: Order, number: i64) -> Result<(), StepError> {
    let sql = "DELETE FROM reservations WHERE id = $1 AND number = $2";
    let deleted = sqlx::query(sql).bind(order.id).bind(number).execute(tx).await?;
    assert_eq!(deleted.rows_affected(), 1);
    Ok(())
}

#[saga_step]
async fn confirm_orders(tx: &mut PgConnection, orders: Batch<Order>) -> Result<BatchResults<()>, StepError> {
    let ids: Vec<i64> = orders.iter().map(|order| order.id).collect();
    sqlx::query("INSERT INTO confirmed SELECT * FROM unnest($1::bigint[])").bind(&ids).execute(tx).await?;
    Ok(orders.map_each(|_| ()))
}

/// What became of some orders.
struct Ran {
    outcomes: BTreeMap<i64, Outcome>,
    reserved: BTreeMap<i64, String>,
    confirmed: Vec<i64>,
    calls: Vec<usize>,
    commits: usize,
    statistics: saga_core::engine::Statistics,
}

impl Ran {
    /// All are completed and have their rows, but for these.
    fn assert_completed_but(&self, others: &[i64]) {
        for (id, outcome) in &self.outcomes {
            let is_other = others.contains(id);
            assert_eq!(matches!(outcome, Outcome::Completed { .. }), !is_other, "order {id}: {outcome:?}");
            let key = (!is_other).then(|| format!("order-{id}:reserve-stock"));
            assert_eq!(self.reserved.get(id), key.as_ref(), "order {id}");
            assert_eq!(self.confirmed.contains(id), !is_other, "order {id}");
        }
    }
}

async fn run(count: i64, trouble: &[(i64, i64)]) -> Ran {
    let place = Place::new().await;
    let tables = "CREATE TABLE reservations (number bigint GENERATED ALWAYS AS IDENTITY, id bigint PRIMARY KEY, \
         key text NOT NULL, pieces bigint NOT NULL CHECK (pieces > 0)); CREATE TABLE confirmed (id bigint PRIMARY KEY)";
    place.connection().await.execute(sqlx::raw_sql(tables)).await.unwrap();
    let saga: Saga<PostgresStore, Order> =
        Saga::named("order").input().step::<reserve_stock>().step::<confirm_orders>().build().unwrap();
    let seen = Seen::default();
    let runtime = Runtime::builder(place.open().await)
        .saga(&saga)
        .state(seen.clone())
        .settings(|settings| settings.transactions_max = 1)
        .start()
        .await
        .unwrap();
    let pieces = |id: i64| trouble.iter().find(|(troubled, _)| *troubled == id).map_or(1, |(_, pieces)| *pieces);
    let orders = (0..count).map(|id| (format!("order-{id}"), Order { id, pieces: pieces(id) }));
    let started = runtime.start_many(&saga, orders).await;
    let mut outcomes = BTreeMap::new();
    for (id, running) in (0..).zip(started) {
        outcomes.insert(id, running.unwrap().outcome().await.unwrap());
    }
    // An outcome may be seen in the store before the commit is counted.
    runtime.shutdown().await;
    let (statistics, commits) = (runtime.statistics(), runtime.store().statistics().transactions);
    let mut conn = place.connection().await;
    let rows: Vec<(i64, String)> =
        sqlx::query_as("SELECT id, key FROM reservations").fetch_all(&mut conn).await.unwrap();
    let confirmed = sqlx::query_scalar("SELECT id FROM confirmed ORDER BY id").fetch_all(&mut conn).await.unwrap();
    let calls = seen.calls.lock().unwrap().clone();
    drop(conn);
    let ran =
        Ran { outcomes, reserved: rows.into_iter().collect(), confirmed, calls, commits: commits as usize, statistics };
    place.remove().await;
    ran
}

#[tokio::test]
async fn one_statement_writes_for_many_sagas_and_two_steps_share_a_commit() {
    let ran = run(200, &[]).await;
    ran.assert_completed_but(&[]);
    assert_eq!(ran.calls.iter().sum::<usize>(), 200);
    assert!(ran.calls.len() <= 8, "{:?}", ran.calls);
    assert!(ran.commits <= 8, "{} transactions", ran.commits);
    assert_eq!((ran.statistics.steps, ran.statistics.splits), (400, 0));
}

/// The statement fails in its middle; the others are found by halving, in the same transaction.
#[tokio::test]
async fn an_sql_error_takes_back_the_batch_and_splits_it() {
    let ran = run(100, &[(42, BAD_ROW)]).await;
    ran.assert_completed_but(&[42]);
    assert!(matches!(&ran.outcomes[&42], Outcome::Compensated { .. }), "{:?}", ran.outcomes[&42]);
    assert!(ran.statistics.splits >= 4, "{:?}", ran.statistics);
    assert!(ran.calls.len() <= 30, "{:?}", ran.calls);
    assert!(ran.commits <= 12, "{} transactions", ran.commits);
}

/// The session of a batch dies in its middle: nothing of it is there, and all of it runs again.
#[tokio::test]
async fn a_batch_whose_session_dies_is_there_once() {
    let ran = run(40, &[(5, KILLS)]).await;
    ran.assert_completed_but(&[]);
}
