use std::future::Future;

use rusqlite::Connection;
use saga_core::StepError;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::{StartIn, StoreError};
use saga_sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// A store with a table of counters for the business.
pub trait Shop: StartIn + Clone {
    /// What the data lies in.
    type Folder: Send + Sync;

    /// A new store, and what its data lies in.
    fn fresh() -> impl Future<Output = (Self, Self::Folder)> + Send;

    /// The same data, as a process sees it that comes after this one.
    fn reopened(self, folder: &Self::Folder) -> impl Future<Output = Self> + Send;

    /// Adds to a counter.
    ///
    /// # Errors
    /// When the store cannot write it.
    fn add(conn: &mut Self::Conn, counter: &str, amount: i64) -> Result<i64, StepError>;

    /// Ends the transaction that the step was given.
    ///
    /// # Errors
    /// When the store refuses it.
    fn end_transaction(conn: &mut Self::Conn) -> Result<(), StepError>;

    /// The committed value of a counter.
    fn total(&self, counter: &str) -> impl Future<Output = i64> + Send;
}

impl Shop for MemoryStore {
    type Folder = ();

    async fn fresh() -> (Self, ()) {
        (Self::new(), ())
    }

    async fn reopened(self, (): &()) -> Self {
        self
    }

    fn add(conn: &mut MemoryConn, counter: &str, amount: i64) -> Result<i64, StepError> {
        Ok(conn.add(counter, amount)?)
    }

    fn end_transaction(conn: &mut MemoryConn) -> Result<(), StepError> {
        conn.end_transaction();
        Ok(())
    }

    async fn total(&self, counter: &str) -> i64 {
        self.read(|table| table.counter(counter))
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

impl Shop for SqliteStore {
    type Folder = TempDir;

    async fn fresh() -> (Self, TempDir) {
        fresh_file(|options| options).await
    }

    async fn reopened(self, folder: &TempDir) -> Self {
        self.close().await;
        drop(self);
        open(folder, |options| options).await
    }

    fn add(conn: &mut Connection, counter: &str, amount: i64) -> Result<i64, StepError> {
        let sql = "INSERT INTO counters (name, value) VALUES (?1, ?2)
            ON CONFLICT (name) DO UPDATE SET value = value + excluded.value RETURNING value";
        Ok(conn.prepare_cached(sql)?.query_row((counter, amount), |row| row.get(0))?)
    }

    fn end_transaction(conn: &mut Connection) -> Result<(), StepError> {
        Ok(conn.execute_batch("COMMIT")?)
    }

    async fn total(&self, counter: &str) -> i64 {
        let counter = counter.to_owned();
        let read = move |conn: &Connection| -> Result<i64, Error> {
            let sql = "SELECT coalesce(sum(value), 0) FROM counters WHERE name = ?1";
            Ok(conn.query_row(sql, [counter], |row| row.get(0))?)
        };
        self.read(read).await.expect("the counters can be read")
    }
}

/// A new file, with the table of counters.
pub(crate) async fn fresh_file(with: impl FnOnce(SqliteOptions) -> SqliteOptions) -> (SqliteStore, TempDir) {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let store = open(&folder, with).await;
    let create = "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT";
    store.write(move |conn| -> Result<(), Error> { Ok(conn.execute_batch(create)?) }).await.expect("a new table");
    (store, folder)
}

async fn open(folder: &TempDir, with: impl FnOnce(SqliteOptions) -> SqliteOptions) -> SqliteStore {
    let options = with(SqliteOptions::new(folder.path().join("shop.db")));
    let opened: Result<SqliteStore, StoreError> = SqliteStore::open_with(options).await;
    opened.expect("the file can be opened")
}
