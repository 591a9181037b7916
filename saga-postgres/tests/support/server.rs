//! The server that the tests run against, and places on it that nobody else uses.

use std::sync::atomic::{AtomicU32, Ordering};

use saga_postgres::{PostgresOptions, PostgresStore};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

/// Where the server is.
const ADDRESS: &str = "SAGA_POSTGRES_URL";

/// A schema of its own in the server's database. What a test writes without naming a schema lands there, too.
#[derive(Debug, Clone)]
pub struct Place {
    pub connect: PgConnectOptions,
    pub schema: String,
}

/// The server's address; without one, a test fails and says how to get one.
pub fn address() -> String {
    std::env::var(ADDRESS).unwrap_or_else(|_| {
        panic!("{ADDRESS} names no server: run `eval \"$(cargo xtask services env)\"`, or `cargo xtask test`, or set it to \
                the address of a PostgreSQL that may be written to, such as postgres://postgres@127.0.0.1:5432/postgres")
    })
}

/// Where to connect to.
pub fn server() -> PgConnectOptions {
    address().parse().unwrap_or_else(|error| panic!("{ADDRESS} is no address of a PostgreSQL: {error}"))
}

impl Place {
    /// A new place with a table `business` for what steps write.
    pub async fn new() -> Self {
        Self::on(&server()).await
    }

    /// The same on another server.
    pub async fn on(server: &PgConnectOptions) -> Self {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        // The process makes it unique among those that run, and what an earlier one left is dropped.
        let schema = format!("test_{}_{number}", std::process::id());
        let create = format!(
            "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; \
             CREATE TABLE {schema}.business (name text PRIMARY KEY, value bigint NOT NULL); \
             CREATE TABLE {schema}.notes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text NOT NULL)"
        );
        let mut conn = PgConnection::connect_with(server).await.expect("the server of the tests answers");
        conn.execute(sqlx::raw_sql(AssertSqlSafe(create))).await.expect("a schema can be created on it");
        conn.close().await.expect("the connection was open");
        let connect = server.clone().options([("search_path", &schema)]);
        Self { connect, schema }
    }

    pub fn options(&self) -> PostgresOptions {
        PostgresOptions::new(self.connect.clone()).schema(&self.schema).expect("a name without anything odd")
    }

    pub async fn open(&self) -> PostgresStore {
        PostgresStore::connect_with(self.options()).await.expect("a place of its own can be opened")
    }

    /// A connection of the application.
    pub async fn connection(&self) -> PgConnection {
        PgConnection::connect_with(&self.connect).await.expect("the server of the tests answers")
    }

    /// Drops everything in it.
    pub async fn remove(self) {
        let mut conn = self.connection().await;
        let drop = format!("DROP SCHEMA {} CASCADE", self.schema);
        conn.execute(sqlx::raw_sql(AssertSqlSafe(drop))).await.expect("nobody uses the schema any more");
    }
}

/// Waits until this session waits for a lock, and answers who has it.
pub async fn blocker_of(conn: &mut PgConnection, pid: i32) -> i32 {
    let sql = "SELECT (pg_blocking_pids($1))[1]";
    loop {
        let blocker: Option<i32> = sqlx::query_scalar(sql).bind(pid).fetch_one(&mut *conn).await.expect("a session");
        match blocker {
            Some(blocker) => return blocker,
            None => tokio::task::yield_now().await,
        }
    }
}

impl Place {
    /// The texts of the notes that are committed, as another session sees them.
    pub async fn notes(&self) -> Vec<String> {
        let mut conn = self.connection().await;
        let notes = sqlx::query_scalar("SELECT text FROM notes ORDER BY id").fetch_all(&mut conn).await;
        conn.close().await.expect("the connection was open");
        notes.expect("the notes can be read")
    }

    /// Plants a bug: the functions of this name that have the text are made again with another one in its place.
    pub async fn spoil(&self, function: &str, text: &str, by: &str) {
        let mut conn = self.connection().await;
        let find = "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
             WHERE n.nspname = $1 AND p.proname = $2";
        let found: Vec<String> =
            sqlx::query_scalar(find).bind(&self.schema).bind(function).fetch_all(&mut conn).await.expect("functions");
        let spoilt: Vec<_> = found.iter().filter(|found| found.contains(text)).map(|of| of.replace(text, by)).collect();
        assert!(!spoilt.is_empty(), "{function} has no {text:?}");
        for function in spoilt {
            conn.execute(sqlx::raw_sql(AssertSqlSafe(function))).await.expect("the spoilt function can be made");
        }
        conn.close().await.expect("the connection was open");
    }
}
