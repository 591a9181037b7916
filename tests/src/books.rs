//! The stores of the services, and what carries their messages.

use std::any::Any;
use std::sync::Arc;

use saga_amqp::AmqpTransport;
use saga_core::StepError;
use saga_core::env::Environment;
use saga_core::memory::{MemoryConn, MemoryStore, MemoryTransport};
use saga_core::store::Store;
use saga_core::transport::Transport;
use saga_postgres::{PostgresOptions, PostgresStore};
use saga_sqlite::SqliteStore;
use sqlx::{Connection as _, PgConnection};

use crate::Shop as _;

/// What has to be kept as long as a store or a transport is used.
pub type Kept = Box<dyn Any + Send + Sync>;

/// A store with a table of counters for the business.
pub trait Books: Store + Clone {
    /// How many processes of each service work on it.
    const REPLICAS: usize;

    /// A new store.
    fn fresh() -> impl Future<Output = (Self, Kept)> + Send;

    /// A new store whose clock is the environment's.
    fn on_clock(environment: Arc<dyn Environment>) -> impl Future<Output = (Self, Kept)> + Send;

    /// What carries messages between stores of this kind.
    fn carrier() -> impl Future<Output = (Arc<dyn Transport>, Kept)> + Send;

    /// Adds to a counter.
    fn add(conn: &mut Self::Conn, counter: &str, amount: i64) -> impl Future<Output = Result<i64, StepError>> + Send;

    /// The committed value of a counter.
    fn counter(&self, counter: &str) -> impl Future<Output = i64> + Send;

    /// Adds to a counter in a commit of its own.
    fn put(&self, counter: &str, amount: i64) -> impl Future<Output = ()> + Send;
}

impl Books for MemoryStore {
    const REPLICAS: usize = 1;

    async fn fresh() -> (Self, Kept) {
        (Self::new(), Box::new(()))
    }

    async fn on_clock(environment: Arc<dyn Environment>) -> (Self, Kept) {
        (Self::with_environment(environment), Box::new(()))
    }

    async fn carrier() -> (Arc<dyn Transport>, Kept) {
        (Arc::new(MemoryTransport::new()), Box::new(()))
    }

    async fn add(conn: &mut MemoryConn, counter: &str, amount: i64) -> Result<i64, StepError> {
        Ok(conn.add(counter, amount)?)
    }

    async fn counter(&self, counter: &str) -> i64 {
        self.read(|table| table.counter(counter))
    }

    async fn put(&self, counter: &str, amount: i64) {
        let mut transaction = self.transaction();
        transaction.conn().add(counter, amount).unwrap();
        transaction.commit().unwrap();
    }
}

impl Books for SqliteStore {
    const REPLICAS: usize = 1;

    async fn fresh() -> (Self, Kept) {
        let (store, folder) = <Self as crate::Shop>::fresh().await;
        (store, Box::new(folder))
    }

    async fn on_clock(environment: Arc<dyn Environment>) -> (Self, Kept) {
        let (store, folder) = crate::shop::fresh_file(|options| options.test_clock(environment)).await;
        (store, Box::new(folder))
    }

    async fn carrier() -> (Arc<dyn Transport>, Kept) {
        #[cfg(feature = "kafka")]
        if crate::kafka::is_on() {
            let (carrier, cluster) = crate::kafka::carrier().await;
            return (carrier, cluster);
        }
        #[cfg(feature = "sqs")]
        if crate::sqs::is_on() {
            return (crate::sqs::carrier().await, Box::new(()));
        }
        broker().await
    }

    async fn add(conn: &mut Self::Conn, counter: &str, amount: i64) -> Result<i64, StepError> {
        <Self as crate::Shop>::add(conn, counter, amount)
    }

    async fn counter(&self, counter: &str) -> i64 {
        self.total(counter).await
    }

    async fn put(&self, counter: &str, amount: i64) {
        let counter = counter.to_owned();
        let added = self.write(move |conn| -> Result<i64, saga_core::store::StoreError> {
            Ok(<Self as crate::Shop>::add(conn, &counter, amount).unwrap())
        });
        added.await.unwrap();
    }
}

impl Books for PostgresStore {
    const REPLICAS: usize = 2;

    async fn fresh() -> (Self, Kept) {
        fresh_database(|options| options).await
    }

    async fn on_clock(environment: Arc<dyn Environment>) -> (Self, Kept) {
        fresh_database(|options| options.test_clock(environment)).await
    }

    async fn carrier() -> (Arc<dyn Transport>, Kept) {
        broker().await
    }

    async fn add(conn: &mut PgConnection, counter: &str, amount: i64) -> Result<i64, StepError> {
        let sql = "INSERT INTO counters (name, value) VALUES ($1, $2) \
             ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value RETURNING value";
        Ok(sqlx::query_scalar(sql).bind(counter).bind(amount).fetch_one(conn).await?)
    }

    async fn counter(&self, counter: &str) -> i64 {
        let sql = "SELECT value FROM counters WHERE name = $1";
        let value = sqlx::query_scalar(sql).bind(counter).fetch_optional(self.pool()).await.unwrap();
        value.unwrap_or(0)
    }

    async fn put(&self, counter: &str, amount: i64) {
        let mut conn = self.pool().acquire().await.unwrap();
        Self::add(&mut conn, counter, amount).await.unwrap();
    }
}

async fn fresh_database(with: impl FnOnce(PostgresOptions) -> PostgresOptions) -> (PostgresStore, Kept) {
    let database = saga_servers::shared::database("across_services").await.unwrap();
    let mut conn = PgConnection::connect(database.url()).await.unwrap();
    let create = "CREATE TABLE counters (name text PRIMARY KEY, value bigint NOT NULL)";
    sqlx::query(create).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    let options = PostgresOptions::from_url(database.url()).unwrap();
    let store = PostgresStore::connect_with(with(options)).await.unwrap();
    (store, Box::new(database))
}

async fn broker() -> (Arc<dyn Transport>, Kept) {
    let vhost = saga_servers::shared::vhost("across-services").await.unwrap();
    let transport = AmqpTransport::connect(vhost.url()).await.unwrap();
    (Arc::new(transport), Box::new(vhost))
}
