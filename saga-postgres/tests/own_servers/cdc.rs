//! With change data capture a message is in the server's log, as Debezium's event router reads it, and in no table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use saga_core::store::{Message, Outbox as _};
use saga_core::transport::{Incoming, Subscription, Transport, TransportError, TransportErrorKind};
use saga_core::{Event, Outcome, Runtime, Saga, StepContext, StepError, saga_step};
use saga_postgres::{PostgresOptions, PostgresStore, Relay};
use saga_servers::PostgresServer;
use serde::{Deserialize, Serialize};
use sqlx::{Connection as _, Executor as _, PgConnection};

/// How many orders are placed, and how many events each of them is followed by.
const ORDERS: u32 = 3;

#[derive(Serialize, Deserialize)]
struct OrderPlaced {
    order: u32,
}

impl Event for OrderPlaced {
    const NAME: &'static str = "order-placed";
}

#[saga_step]
async fn place_order(tx: &mut PgConnection, ctx: &StepContext, order: u32) -> Result<(), StepError> {
    sqlx::query("INSERT INTO orders (id) VALUES ($1)").bind(i64::from(order)).execute(tx).await?;
    ctx.emit(&OrderPlaced { order })
}

fn orders() -> Saga<PostgresStore, u32> {
    Saga::named("orders").input::<u32>().step::<place_order>().build().expect("a valid saga")
}

/// Notes whether anything was given to it.
#[derive(Clone, Default)]
struct Untouched {
    is_touched: Arc<AtomicBool>,
}

#[async_trait]
impl Transport for Untouched {
    fn name(&self) -> &'static str {
        "untouched"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        self.is_touched.store(true, Ordering::Relaxed);
        messages.iter().map(|_| Ok(())).collect()
    }

    async fn subscribe(&self, _subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        Err(TransportError::new(TransportErrorKind::Unavailable, "subscribe", "nothing comes from here"))
    }
}

/// A row of the log: the operation, and the columns as text.
type Logged = (String, BTreeMap<String, String>);

/// Reads a line of `test_decoding`, such as `table saga.outbox: INSERT: seq[bigint]:1 type[text]:'order-placed'`.
fn logged(line: &str) -> Option<Logged> {
    let rest = line.strip_prefix("table saga.outbox: ")?;
    let (operation, mut rest) = rest.split_once(": ")?;
    let mut columns = BTreeMap::new();
    while let Some((name, after)) = rest.split_once('[') {
        let (_, after) = after.split_once("]:")?;
        let (value, after) = match after.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'')?,
            None => after.split_once(' ').unwrap_or((after, "")),
        };
        columns.insert(name.trim().trim_matches('"').to_owned(), value.to_owned());
        rest = after;
    }
    Some((operation.to_owned(), columns))
}

/// The changes of the outbox since the last call, transaction by transaction.
async fn changes(conn: &mut PgConnection) -> Vec<Vec<Logged>> {
    let sql = "SELECT data FROM pg_logical_slot_get_changes('orders', NULL, NULL, 'include-xids', '0')";
    let lines: Vec<String> = sqlx::query_scalar(sql).fetch_all(conn).await.unwrap();
    let transactions = lines.split(|line| line == "COMMIT");
    let transactions = transactions.map(|lines| lines.iter().filter_map(|line| logged(line)).collect::<Vec<_>>());
    transactions.filter(|changes| !changes.is_empty()).collect()
}

fn column<'a>((_, columns): &'a Logged, name: &str) -> &'a str {
    columns.get(name).unwrap_or_else(|| panic!("{columns:?} has no {name}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_with_cdc_a_message_is_in_the_log_and_in_no_table() {
    let server = PostgresServer::start_with(&[("wal_level", "logical")]).await.unwrap();
    let url = server.create_database("orders").await.unwrap();
    let mut conn = PgConnection::connect(&url).await.unwrap();
    conn.execute("CREATE TABLE orders (id bigint PRIMARY KEY)").await.unwrap();
    let options = PostgresOptions::from_url(&url).unwrap().relay(Relay::Cdc);
    let store = PostgresStore::connect_with(options).await.unwrap();
    conn.execute("SELECT pg_create_logical_replication_slot('orders', 'test_decoding')").await.unwrap();
    let transport = Untouched::default();
    let definition = orders();
    let runtime = Runtime::builder(store.clone()).saga(&definition).transport(transport.clone()).start().await.unwrap();

    // What a step emits.
    for order in 1..=ORDERS {
        let running = runtime.start(&definition, format!("order-{order}"), order).await.unwrap();
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    }
    let emitted = changes(&mut conn).await;
    assert_eq!(emitted.len(), ORDERS as usize, "{emitted:?}");
    for (order, transaction) in (1..).zip(&emitted) {
        let [insert, delete] = &transaction[..] else { panic!("not one row, come and gone: {transaction:?}") };
        assert_eq!((&*insert.0, &*delete.0), ("INSERT", "DELETE"));
        assert_eq!(column(insert, "aggregatetype"), "orders");
        assert_eq!(column(insert, "aggregateid"), format!("order-{order}"));
        assert_eq!(column(insert, "type"), "order-placed");
        // As `bytea` is shown, in hexadecimal.
        let shown = format!("{{\"order\":{order}}}");
        let payload: Vec<String> = shown.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(column(insert, "payload"), format!("\\x{}", payload.concat()));
        assert!(uuid::Uuid::try_parse(column(insert, "id")).is_ok(), "{insert:?}");
        assert_eq!(column(insert, "seq"), column(delete, "seq"), "another row was deleted");
    }

    // What the application publishes in its own transactions; one of them is rolled back.
    for nth in 0..ORDERS {
        let mut tx = conn.begin().await.unwrap();
        let published =
            runtime.publish("product-7", &OrderPlaced { order: nth }).topic("stock").in_tx(&mut tx).await.unwrap();
        if nth == 1 {
            tx.rollback().await.unwrap();
        } else {
            tx.commit().await.unwrap();
            published.committed();
        }
    }
    let published = changes(&mut conn).await;
    let positions: Vec<&str> = published.iter().map(|changes| column(&changes[0], "position")).collect();
    assert_eq!(positions, ["1", "2"], "{published:?}");

    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM saga.outbox").fetch_one(&mut conn).await.unwrap();
    assert_eq!((rows, store.depth().await.unwrap().rows), (0, 0));
    runtime.shutdown().await;
    assert!(!transport.is_touched.load(Ordering::Relaxed), "the relay ran");
    store.close().await;
    conn.close().await.unwrap();
}

#[tokio::test]
async fn the_connector_that_the_page_shows_names_what_is_there() {
    let page = include_str!("../../../docs/cdc.md");
    let (_, block) = page.split_once("```json\n").unwrap();
    let connector: serde_json::Value = serde_json::from_str(block.split_once("```").unwrap().0).unwrap();
    let of = |name: &str| connector["config"][name].as_str().unwrap_or_else(|| panic!("no {name} in {connector}"));
    let (schema, table) = of("table.include.list").split_once('.').unwrap();
    assert_eq!((schema, of("schema.include.list")), ("saga", "saga"), "the schema of the default options");

    let place = crate::support::Place::new().await;
    place.open().await.close().await;
    let mut conn = place.connection().await;
    let columns = "SELECT column_name::text FROM information_schema.columns \
         WHERE table_schema = current_schema() AND table_name = $1";
    let columns: Vec<String> = sqlx::query_scalar(columns).bind(table).fetch_all(&mut conn).await.unwrap();
    let placed = of("transforms.outbox.table.fields.additional.placement").split(',');
    let placed = placed.map(|placement| placement.split(':').next().unwrap());
    for column in ["id", "aggregatetype", "aggregateid", "type", "payload"].into_iter().chain(placed) {
        assert!(columns.iter().any(|there| there == column), "the outbox has no column {column:?}: {columns:?}");
    }
    conn.close().await.unwrap();
    place.remove().await;
}
