//! Batches that meet on hot rows: 77 products, 4 workers, and no standstill.

use std::sync::Arc;
use std::time::Duration;

use saga_core::store::{HandlerVerdict, Sagas as _, Store as _, StoreErrorKind, TransactError};
use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
use saga_postgres::{PostgresOptions, PostgresStore};
use serde::{Deserialize, Serialize};
use sqlx::{Connection as _, Executor as _, PgConnection, Row as _};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::support::{Body, Place, begun, blocker_of, keep};

const PRODUCTS: i64 = 77;
const ORDERS: i64 = 400;
/// A test that hangs ends. How fast it is says more of the machine than of the rule, which the scripted meeting below shows.
const TIME_MAX: Duration = Duration::from_mins(5);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    products: Vec<i64>,
}

/// Takes one of each product, in the order in which the customer named them.
#[saga_step(retry(attempts = 3), on_exhausted = "compensate")]
async fn take_stock(tx: &mut PgConnection, order: Order) -> Result<(), StepError> {
    for product in order.products {
        let update = "UPDATE products SET in_stock = in_stock - 1 WHERE id = $1";
        sqlx::query(update).bind(product).execute(&mut *tx).await?;
    }
    Ok(())
}

fn orders() -> Saga<PostgresStore, Order> {
    Saga::named("orders").input::<Order>().step::<take_stock>().build().expect("orders is a valid saga")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_that_meet_on_hot_rows_do_not_stand_still() {
    let place = Place::new().await;
    let mut conn = place.connection().await;
    conn.execute("CREATE TABLE products (id bigint PRIMARY KEY, in_stock bigint NOT NULL)").await.unwrap();
    let fill = "INSERT INTO products SELECT id, 0 FROM generate_series(0, $1 - 1) id";
    sqlx::query(fill).bind(PRODUCTS).execute(&mut conn).await.unwrap();
    let store = place.open().await;
    let definition = orders();
    let runtime = Runtime::builder(store.clone()).saga(&definition).start().await.unwrap();
    // Neighbours name their two products in opposite orders, so that waiting for each other is the rule.
    let order = |number: i64| {
        let (one, two) = (number * 7 % PRODUCTS, (number * 7 + 1) % PRODUCTS);
        Order { products: if number % 2 == 0 { vec![one, two] } else { vec![two, one] } }
    };
    let all = async {
        let mut running = Vec::new();
        for number in 0..ORDERS {
            running.push(runtime.start(&definition, format!("order-{number}"), order(number)).await.unwrap());
        }
        for saga in running {
            assert!(matches!(saga.outcome().await.unwrap(), Outcome::Completed { .. }));
        }
    };
    tokio::time::timeout(TIME_MAX, all).await.expect("the batches stand still");
    let taken: i64 = conn.fetch_one("SELECT -sum(in_stock)::bigint FROM products").await.unwrap().try_get(0).unwrap();
    assert_eq!(taken, 2 * ORDERS, "each product of each order was taken once");
    // What met another transaction was no failed attempt.
    let failed: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {}.history", place.schema)))
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert_eq!(failed, 0, "a lock that was waited for was told to the user");
    assert_eq!(store.orphaned(10).await.unwrap(), []);
    runtime.shutdown().await;
    store.close().await;
}

/// A handler that takes one of a product, and gives way to another transaction.
fn takes(store: &PostgresStore, product: i64, body: Body) -> Body {
    let store = store.clone();
    body.then(move |conn| {
        let store = store.clone();
        Box::pin(async move {
            let update = "UPDATE products SET in_stock = in_stock - 1 WHERE id = $1";
            match sqlx::query(update).bind(product).execute(conn).await {
                Ok(_) => HandlerVerdict::Keep,
                Err(error) if store.is_conflict(&error) => HandlerVerdict::Conflict,
                Err(_) => HandlerVerdict::RollBack,
            }
        })
    })
}

/// A batch that has one product and wants another, which somebody else has.
struct Met {
    /// Has product 1 and keeps it.
    holder: PgConnection,
    /// Has product 2 and wants product 1.
    batch: JoinHandle<Result<(), TransactError>>,
    /// Wants product 2.
    behind: JoinHandle<()>,
    behind_pid: i32,
}

async fn meet(place: &Place, options: PostgresOptions) -> Met {
    let mut holder = place.connection().await;
    let products = "CREATE TABLE products (id bigint PRIMARY KEY, in_stock bigint NOT NULL); \
         INSERT INTO products VALUES (1, 10), (2, 10)";
    holder.execute(sqlx::raw_sql(products)).await.unwrap();
    holder.execute("BEGIN").await.unwrap();
    holder.execute("UPDATE products SET in_stock = 9 WHERE id = 1").await.unwrap();
    let store = PostgresStore::connect_with(options).await.unwrap();
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    let has_two = Arc::new(Notify::new());
    let body = Body::new(&claims).then({
        let has_two = Arc::clone(&has_two);
        move |conn| {
            let has_two = Arc::clone(&has_two);
            Box::pin(async move {
                let update = "UPDATE products SET in_stock = in_stock - 1 WHERE id = 2";
                let taken = sqlx::query(update).execute(conn).await;
                has_two.notify_one();
                keep(&taken)
            })
        }
    });
    let body = takes(&store, 1, body);
    let batch = tokio::spawn(async move {
        let ended = body.transact(&store).await;
        store.close().await;
        ended
    });
    has_two.notified().await;
    let mut conn = place.connection().await;
    let behind_pid = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut conn).await.unwrap();
    let behind = tokio::spawn(async move {
        conn.execute("UPDATE products SET in_stock = in_stock - 1 WHERE id = 2").await.unwrap();
        conn.close().await.unwrap();
    });
    Met { holder, batch, behind, behind_pid }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_gives_its_locks_back_rather_than_wait() {
    let place = Place::new().await;
    let met = meet(&place, place.options()).await;
    // The holder has not ended: whoever stands behind the batch goes on all the same.
    met.behind.await.unwrap();
    let error = met.batch.await.unwrap().unwrap_err();
    assert_eq!((error.error.kind(), error.culprit), (StoreErrorKind::Conflict, None));
    let mut holder = met.holder;
    holder.execute("COMMIT").await.unwrap();
    holder.close().await.unwrap();
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_lock_timeout_everybody_stands_behind_one_batch() {
    let place = Place::new().await;
    let met = meet(&place, place.options().batch_lock_timeout(Duration::from_hours(1))).await;
    let mut holder = met.holder;
    let holder_pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut holder).await.unwrap();
    let mut conn = place.connection().await;
    let batch_pid = blocker_of(&mut conn, met.behind_pid).await;
    assert_eq!(blocker_of(&mut conn, batch_pid).await, holder_pid, "it keeps product 2 while it waits for product 1");
    assert!(!met.batch.is_finished() && !met.behind.is_finished());
    holder.execute("COMMIT").await.unwrap();
    met.batch.await.unwrap().unwrap();
    met.behind.await.unwrap();
    conn.close().await.unwrap();
    holder.close().await.unwrap();
    place.remove().await;
}
