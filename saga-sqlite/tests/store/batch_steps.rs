//! Batch steps on SQLite: one call writes for many sagas, and each has what is its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use saga_core::{Batch, BatchResults, Outcome, Runtime, Saga, State, StepError, saga_compensation, saga_step};
use saga_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    id: i64,
    trouble: Option<Trouble>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Trouble {
    /// It is rejected by its answer.
    SoldOut,
    /// It breaks a constraint of the table.
    BadRow,
    Panics,
    /// It sends a `ROLLBACK`.
    RollsBack,
}

#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<usize>>>);

#[saga_step(compensate = release_stock, retry(attempts = 2, base = "1ms", cap = "1ms"))]
async fn reserve_stock(
    tx: &mut Connection,
    orders: Batch<Order>,
    State(calls): State<Calls>,
) -> Result<BatchResults<i64>, StepError> {
    calls.0.lock().unwrap().push(orders.len());
    let mut numbers = BTreeMap::new();
    for (order, key) in orders.iter().zip(orders.keys()) {
        match order.trouble {
            Some(Trouble::SoldOut) => continue,
            Some(Trouble::RollsBack) => tx.execute_batch("ROLLBACK")?,
            _ => {}
        }
        let id = if order.trouble == Some(Trouble::BadRow) { -1 } else { order.id };
        let mut insert = tx.prepare_cached("INSERT INTO reservations (id, key) VALUES (?1, ?2)")?;
        insert.execute((id, key))?;
        numbers.insert(order.id, order.id * 10);
        assert!(order.trouble != Some(Trouble::Panics), "the warehouse is on fire");
    }
    Ok(orders.map_each(|order| match numbers.get(&order.id) {
        Some(number) => Ok(*number),
        None => Err(StepError::reject("sold out")),
    }))
}

#[saga_compensation]
async fn release_stock(tx: &mut Connection, order: Order, number: i64) -> Result<(), StepError> {
    assert_eq!(number, order.id * 10);
    tx.execute("DELETE FROM reservations WHERE id = ?1", [order.id])?;
    Ok(())
}

#[saga_step]
async fn confirm_orders(tx: &mut Connection, orders: Batch<Order>) -> Result<BatchResults<()>, StepError> {
    for order in &orders {
        tx.execute("INSERT INTO confirmed (id) VALUES (?1)", [order.id])?;
    }
    Ok(orders.map_each(|_| ()))
}

struct Ran {
    outcomes: BTreeMap<i64, Outcome>,
    rows: Vec<(i64, String)>,
    confirmed: Vec<i64>,
    calls: Vec<usize>,
    statistics: saga_core::engine::Statistics,
}

impl Ran {
    fn assert_completed_but(&self, others: &[i64]) {
        let good: Vec<i64> = self.outcomes.keys().copied().filter(|id| !others.contains(id)).collect();
        for id in &good {
            assert!(matches!(self.outcomes[id], Outcome::Completed { .. }), "order {id}: {:?}", self.outcomes[id]);
        }
        let rows: Vec<(i64, String)> = good.iter().map(|id| (*id, format!("order-{id}:reserve-stock"))).collect();
        assert_eq!(self.rows, rows);
        assert_eq!(self.confirmed, good);
    }
}

async fn run(count: i64, trouble: &[(i64, Trouble)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let create = "CREATE TABLE reservations (id INTEGER PRIMARY KEY CHECK (id >= 0), key TEXT NOT NULL) STRICT; \
         CREATE TABLE confirmed (id INTEGER PRIMARY KEY) STRICT";
    store
        .write(move |conn| -> Result<(), Box<dyn std::error::Error + Send + Sync>> { Ok(conn.execute_batch(create)?) })
        .await
        .unwrap();
    let saga: Saga<SqliteStore, Order> =
        Saga::named("order").input().step::<reserve_stock>().step::<confirm_orders>().build().unwrap();
    let calls = Calls::default();
    let builder = Runtime::builder(store).saga(&saga).state(calls.clone());
    let runtime = builder.settings(|settings| settings.transactions_max = 1).start().await.unwrap();
    let trouble_of = |id| trouble.iter().find(|(troubled, _)| *troubled == id).map(|(_, trouble)| *trouble);
    let orders = (0..count).map(|id| (format!("order-{id}"), Order { id, trouble: trouble_of(id) }));
    let started = runtime.start_many(&saga, orders).await;
    let mut outcomes = BTreeMap::new();
    for (id, running) in (0..).zip(started) {
        outcomes.insert(id, running.unwrap().outcome().await.unwrap());
    }
    let statistics = runtime.statistics();
    runtime.shutdown().await;
    drop(runtime);
    let conn = Connection::open(&path).unwrap();
    let mut rows = conn.prepare("SELECT id, key FROM reservations ORDER BY id").unwrap();
    let rows = rows.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let mut confirmed = conn.prepare("SELECT id FROM confirmed ORDER BY id").unwrap();
    let confirmed = confirmed.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let calls = calls.0.lock().unwrap().clone();
    Ran { outcomes, rows, confirmed, calls, statistics }
}

#[tokio::test]
async fn one_call_writes_for_many_sagas() {
    let ran = run(200, &[(3, Trouble::SoldOut)]).await;
    ran.assert_completed_but(&[3]);
    assert!(matches!(&ran.outcomes[&3], Outcome::Compensated { .. }));
    assert_eq!(ran.calls.iter().sum::<usize>(), 200);
    assert!(ran.calls.len() <= 12, "{:?}", ran.calls);
    assert_eq!(ran.statistics.splits, 0);
}

#[tokio::test]
async fn what_is_bad_is_found_by_halving_and_the_rest_is_committed() {
    let ran = run(100, &[(42, Trouble::BadRow), (77, Trouble::Panics)]).await;
    ran.assert_completed_but(&[42, 77]);
    assert!(matches!(&ran.outcomes[&42], Outcome::Compensated { .. }), "{:?}", ran.outcomes[&42]);
    assert!(matches!(&ran.outcomes[&77], Outcome::Compensated { .. }), "{:?}", ran.outcomes[&77]);
    assert!(ran.statistics.splits >= 2, "{:?}", ran.statistics);
    assert!(ran.calls.len() <= 60, "{:?}", ran.calls);
}

/// A statement that would end the transaction of all makes the saga stuck that sent it, and no other.
#[tokio::test]
async fn one_that_ends_the_transaction_is_stuck_alone() {
    let ran = run(20, &[(5, Trouble::RollsBack)]).await;
    ran.assert_completed_but(&[5]);
    assert!(matches!(&ran.outcomes[&5], Outcome::Stuck { .. } | Outcome::Compensated { .. }), "{:?}", ran.outcomes[&5]);
}

/// Trusted steps run without savepoints; the first failure rolls back the group, which runs again with them.
#[tokio::test]
async fn a_trusted_batch_that_fails_runs_again_with_savepoints() {
    let ran = run(1_500, &[(1_400, Trouble::BadRow), (1_401, Trouble::SoldOut)]).await;
    ran.assert_completed_but(&[1_400, 1_401]);
}
