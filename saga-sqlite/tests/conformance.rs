//! The suite that every store is held to, on SQLite files in a folder of their own.
#![allow(clippy::expect_used, reason = "a suite fails by panicking")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::{Connection, OptionalExtension as _};
use saga_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use saga_testkit::{Fault, Provokes, StartInHarness, StoreHarness, Unavailable, store_main};

struct Sqlite {
    folder: tempfile::TempDir,
    files: AtomicU32,
}

impl Sqlite {
    fn new() -> Result<Self, Unavailable> {
        let unavailable =
            |error: std::io::Error| Unavailable { backend: "sqlite".to_owned(), reason: error.to_string() };
        let folder = tempfile::tempdir().map_err(unavailable)?;
        Ok(Self { folder, files: AtomicU32::new(0) })
    }

    async fn open(&self, path: PathBuf) -> SqliteStore {
        // The suite is about what is written, not about the power going out.
        let options = SqliteOptions::new(path).synchronous(Synchronous::Normal);
        SqliteStore::open_with(options).await.expect("a file in a folder of our own can be opened")
    }
}

impl StoreHarness for Sqlite {
    type Store = SqliteStore;

    async fn fresh(&self) -> SqliteStore {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let store = self.open(self.folder.path().join(format!("{number}.db"))).await;
        let create = "CREATE TABLE business (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT";
        let created: Result<(), Fault> = store.write(move |conn| Ok(conn.execute_batch(create)?)).await;
        created.expect("a table can be created in a new file");
        store
    }

    async fn reopen(&self, store: SqliteStore) -> SqliteStore {
        store.close().await;
        self.open(store.path().to_owned()).await
    }

    async fn write_business(&self, conn: &mut Connection, name: &str, value: i64) -> Result<(), Fault> {
        conn.execute("INSERT OR REPLACE INTO business (name, value) VALUES (?1, ?2)", (name, value))?;
        Ok(())
    }

    async fn read_business(&self, store: &SqliteStore, name: &str) -> Option<i64> {
        let name = name.to_owned();
        let read = move |conn: &Connection| -> Result<Option<i64>, Fault> {
            let sql = "SELECT value FROM business WHERE name = ?1";
            Ok(conn.query_row(sql, [name], |row| row.get(0)).optional()?)
        };
        store.read(read).await.expect("the business table can be read")
    }

    fn provokes(&self) -> Provokes {
        Provokes { ended_transaction: true, unknown_commit: true, hours: false }
    }

    async fn end_transaction(&self, conn: &mut Connection) {
        // It is refused, and found out all the same.
        _ = conn.execute_batch("COMMIT");
    }

    async fn fail_statement(&self, conn: &mut Connection) -> Fault {
        let refused = conn.execute("INSERT INTO business (name, value) VALUES ('bad', NULL)", ());
        refused.expect_err("the column holds no NULL").into()
    }

    fn doubtful(&self, store: &SqliteStore, commits: bool) -> Option<SqliteStore> {
        Some(store.with_lost_commit(commits))
    }
}

impl StartInHarness for Sqlite {
    type Transaction = Connection;

    async fn begin(&self, store: &SqliteStore) -> Connection {
        let conn = self.bare(store).await;
        conn.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
        conn
    }

    async fn bare(&self, store: &SqliteStore) -> Connection {
        let conn = Connection::open(store.path()).expect("the file can be opened beside its store");
        conn.busy_timeout(std::time::Duration::from_secs(5)).expect("the connection is open");
        conn
    }

    fn conn<'a>(&self, transaction: &'a mut Connection) -> &'a mut Connection {
        transaction
    }

    async fn commit(&self, transaction: Connection) -> Result<(), Fault> {
        Ok(transaction.execute_batch("COMMIT")?)
    }

    async fn roll_back(&self, transaction: Connection) {
        transaction.execute_batch("ROLLBACK").expect("the transaction is open");
    }
}

store_main!(start_in: try Sqlite::new());
