//! A table of payments on each store.

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::{IdempotencyKeys, StoreError};
use saga_postgres::{PostgresStore, sqlx};
use saga_servers::shared;
use saga_sqlite::{SqliteOptions, SqliteStore, Synchronous};

/// A store with a table of payments.
pub(crate) trait Ledger: IdempotencyKeys + Clone {
    /// What the data lies in.
    type Place: Send + Sync;

    /// A new store.
    fn fresh() -> impl Future<Output = (Self, Self::Place)> + Send;

    /// Writes a payment, and counts those of that name.
    fn pay(conn: &mut Self::Conn, name: &str) -> impl Future<Output = Result<i64, String>> + Send;

    /// Sends a statement that fails.
    fn fail(conn: &mut Self::Conn) -> impl Future<Output = ()> + Send;

    /// How many payments of that name are committed.
    fn payments(&self, name: &str) -> impl Future<Output = i64> + Send;

    /// A handle whose next commit is answered as unknown; `commits` says whether it takes place.
    fn doubtful(&self, commits: bool) -> Self;
}

impl Ledger for MemoryStore {
    type Place = ();

    async fn fresh() -> (Self, ()) {
        (Self::new(), ())
    }

    async fn pay(conn: &mut MemoryConn, name: &str) -> Result<i64, String> {
        conn.add(name, 1).map_err(|error| error.to_string())
    }

    async fn fail(conn: &mut MemoryConn) {
        // Nothing fails in memory but the whole transaction.
        conn.end_transaction();
    }

    async fn payments(&self, name: &str) -> i64 {
        self.read(|table| table.counter(name))
    }

    fn doubtful(&self, commits: bool) -> Self {
        use saga_testkit::{MemoryHarness, StoreHarness as _};
        MemoryHarness.doubtful(self, commits).unwrap()
    }
}

impl Ledger for SqliteStore {
    type Place = tempfile::TempDir;

    async fn fresh() -> (Self, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(folder.path().join("shop.db")).synchronous(Synchronous::Normal);
        let store = Self::open_with(options).await.unwrap();
        let create = "CREATE TABLE payments (name TEXT NOT NULL) STRICT";
        let created: Result<(), StoreError> = store.write(move |conn| Ok(conn.execute_batch(create).unwrap())).await;
        created.unwrap();
        (store, folder)
    }

    async fn pay(conn: &mut rusqlite::Connection, name: &str) -> Result<i64, String> {
        conn.execute("INSERT INTO payments (name) VALUES (?1)", [name]).map_err(|error| error.to_string())?;
        let count = "SELECT count(*) FROM payments WHERE name = ?1";
        conn.query_row(count, [name], |row| row.get(0)).map_err(|error| error.to_string())
    }

    async fn fail(conn: &mut rusqlite::Connection) {
        // It is refused, and the store finds out.
        conn.execute_batch("COMMIT").unwrap_err();
    }

    async fn payments(&self, name: &str) -> i64 {
        let name = name.to_owned();
        let read = move |conn: &rusqlite::Connection| -> Result<i64, StoreError> {
            let count = "SELECT count(*) FROM payments WHERE name = ?1";
            Ok(conn.query_row(count, [name], |row| row.get(0)).unwrap())
        };
        self.read(read).await.unwrap()
    }

    fn doubtful(&self, commits: bool) -> Self {
        self.with_lost_commit(commits)
    }
}

impl Ledger for PostgresStore {
    type Place = shared::Database;

    async fn fresh() -> (Self, shared::Database) {
        let database = shared::database("payments").await.unwrap();
        let store = Self::connect(database.url()).await.unwrap();
        let created = store.write(async |conn| -> Result<(), StoreError> {
            sqlx::query("CREATE TABLE payments (name text NOT NULL)").execute(conn).await.unwrap();
            Ok(())
        });
        created.await.unwrap();
        (store, database)
    }

    async fn pay(conn: &mut sqlx::PgConnection, name: &str) -> Result<i64, String> {
        let insert = sqlx::query("INSERT INTO payments (name) VALUES ($1)").bind(name).execute(&mut *conn).await;
        insert.map_err(|error| error.to_string())?;
        let count =
            sqlx::query_scalar("SELECT count(*) FROM payments WHERE name = $1").bind(name).fetch_one(conn).await;
        count.map_err(|error| error.to_string())
    }

    async fn fail(conn: &mut sqlx::PgConnection) {
        sqlx::query("SELECT 1 / 0").execute(conn).await.unwrap_err();
    }

    async fn payments(&self, name: &str) -> i64 {
        let count = self.write(async |conn| -> Result<i64, StoreError> {
            let count = sqlx::query_scalar("SELECT count(*) FROM payments WHERE name = $1").bind(name).fetch_one(conn);
            Ok(count.await.unwrap())
        });
        count.await.unwrap()
    }

    fn doubtful(&self, commits: bool) -> Self {
        self.with_lost_commit(commits)
    }
}
