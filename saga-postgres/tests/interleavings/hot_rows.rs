//! Batches that meet on hot rows: 77 products, 4 workers, and no standstill.

use std::time::Duration;

use saga_core::store::Sagas as _;
use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use serde::{Deserialize, Serialize};
use sqlx::{Executor as _, PgConnection, Row as _};

use super::support::Place;

const PRODUCTS: i64 = 77;
const ORDERS: i64 = 1_200;
/// At the speed of a standstill, about 19 steps a second, it would take a minute.
const TIME_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    products: Vec<i64>,
}

/// Takes one of each product, in the order in which the customer named them.
#[saga_step(retry(attempts = 3))]
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
    assert_eq!(store.forgotten(10).await.unwrap(), []);
    runtime.shutdown().await;
    store.close().await;
}
