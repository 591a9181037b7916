//! A server of the tests' own, with everything counted that goes on in it.

use saga_postgres::{PostgresOptions, PostgresStore};
use saga_servers::{FaultProxy, PostgresServer};
use sqlx::{Connection as _, Executor as _, PgConnection, Row as _};

use crate::cost::Cost;

/// Nothing of the server's own writes to the log or takes part in statistics while something is counted.
const SETTINGS: [(&str, &str); 5] = [
    ("shared_preload_libraries", "pg_stat_statements"),
    ("autovacuum", "off"),
    ("checkpoint_timeout", "1h"),
    ("wal_level", "replica"),
    ("synchronous_commit", "on"),
];

const PREPARE: &str = "CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_walinspect; \
     CREATE TABLE reservations (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), amount bigint NOT NULL); \
     CREATE TABLE payments (LIKE reservations INCLUDING ALL); \
     CREATE TABLE confirmations (LIKE reservations INCLUDING ALL)";

/// A server that is reached through a proxy, and a connection past it to read the counters.
pub(crate) struct Meter {
    proxy: FaultProxy,
    reader: PgConnection,
    _server: PostgresServer,
}

impl Meter {
    pub(crate) async fn start() -> Self {
        let server = PostgresServer::start_with(&SETTINGS).await.unwrap();
        let proxy = FaultProxy::start(&server.url()).await.unwrap();
        let mut reader = PgConnection::connect(&server.url()).await.unwrap();
        reader.execute(sqlx::raw_sql(PREPARE)).await.unwrap();
        Self { proxy, reader, _server: server }
    }

    /// A store of one connection, so that what a session does once is done before something is counted.
    pub(crate) async fn store(&self, options: impl FnOnce(PostgresOptions) -> PostgresOptions) -> PostgresStore {
        let base = PostgresOptions::from_url(self.proxy.url()).unwrap().connections_max(1).without_hints();
        PostgresStore::connect_with(options(base)).await.unwrap()
    }

    /// What `work` on a store costs, until the connection that it used is back.
    pub(crate) async fn of(&mut self, store: &PostgresStore, work: impl Future<Output = ()>) -> Cost {
        until_idle(store).await;
        self.reader.execute("SELECT pg_stat_statements_reset()").await.unwrap();
        let begin: String = self.scalar("SELECT pg_current_wal_insert_lsn()::text").await;
        let before = self.proxy.counts().round_trips;
        work.await;
        until_idle(store).await;
        let round_trips = self.proxy.counts().round_trips - before;
        let statements: i64 = self
            .scalar(
                "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements \
                 WHERE query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE '%pg_current_wal_insert_lsn%'",
            )
            .await;
        let (commits, wal_records) = self.log_since(&begin).await;
        Cost { commits, statements: statements.unsigned_abs(), round_trips, wal_records }
    }

    /// The commits and all records in the log, less what the server writes of its own accord.
    async fn log_since(&mut self, begin: &str) -> (u64, u64) {
        let sql = "SELECT coalesce(sum(count) FILTER (WHERE type = 'Transaction/COMMIT'), 0)::bigint, \
             coalesce(sum(count) FILTER (WHERE type !~ '^(Standby|XLOG)/'), 0)::bigint \
             FROM (SELECT \"resource_manager/record_type\" AS type, count \
             FROM pg_get_wal_stats($1::pg_lsn, pg_current_wal_flush_lsn(), true)) log";
        let row = sqlx::query(sql).bind(begin).persistent(false).fetch_one(&mut self.reader).await.unwrap();
        (row.get::<i64, _>(0).unsigned_abs(), row.get::<i64, _>(1).unsigned_abs())
    }

    async fn scalar<T>(&mut self, sql: &'static str) -> T
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
    {
        sqlx::query_scalar(sql).persistent(false).fetch_one(&mut self.reader).await.unwrap()
    }
}

/// Waits until the pool has asked its connection whether it is well, which it does behind the caller's back.
async fn until_idle(store: &PostgresStore) {
    while store.statistics().idle < store.statistics().connections {
        tokio::task::yield_now().await;
    }
}
