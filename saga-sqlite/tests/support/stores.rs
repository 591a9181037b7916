//! Stores in folders of their own, with a table `notes` beside the store's own.

use rusqlite::Connection;
use saga_core::store::{StoreError, TransactError};
use saga_sqlite::SqliteStore;
use saga_testkit::step_body::keep;
use tempfile::TempDir;

use super::begun;

/// A body on a connection to SQLite.
pub type Body = saga_testkit::step_body::Body<Connection>;

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A new store in a folder that goes with it, with a table `notes` beside the store's own.
pub async fn store() -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("orders.db")).await.unwrap();
    create_notes(&store).await;
    (folder, store)
}

pub async fn create_notes(store: &SqliteStore) {
    let create = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT";
    store.write(move |conn| -> Result<(), Error> { Ok(conn.execute_batch(create)?) }).await.unwrap();
}

/// The texts of the notes that are committed.
pub async fn notes(store: &SqliteStore) -> Vec<String> {
    let read = |conn: &Connection| -> Result<Vec<String>, Error> {
        let mut statement = conn.prepare("SELECT text FROM notes ORDER BY id")?;
        let texts = statement.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(texts)
    };
    store.read(read).await.unwrap()
}

/// Completes the saga of this key in a step transaction that writes a note of the same text.
pub async fn complete(store: &SqliteStore, key: &'static str) -> Result<(), TransactError> {
    let claim = begun(store, key).await;
    Body::new(&[claim]).then_now(move |conn| keep(&write_note(conn, key))).transact(store).await
}

pub fn write_note(conn: &Connection, text: &str) -> rusqlite::Result<usize> {
    conn.prepare_cached("INSERT INTO notes (text) VALUES (?1)")?.execute([text])
}

/// What SQLite says of the whole file.
pub fn assert_integrity(path: &std::path::Path) {
    let conn = Connection::open(path).unwrap();
    let answer: String = conn.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(answer, "ok");
}

/// The error of a call that must fail.
pub fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> StoreError {
    answer.expect_err("the call should have been refused")
}
