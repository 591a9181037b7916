//! The file that a contender works on, and the count of what it left there.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use rusqlite::Connection;
use saga_sqlite::SqliteStore;

use super::workload::{BUSINESS_SCHEMA, STEPS_PER_SAGA, assert_business_rows};

/// What the store sets for its writer, so that a floor has no other costs than its writes.
const SETTINGS: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA cache_size = -32768;
    PRAGMA temp_store = MEMORY;
";

const STATEMENT_CACHE: usize = 192;

/// Makes the file with the store's own tables and indices, and those of the business.
pub(crate) async fn create(file: &Path) -> Result<()> {
    drop(SqliteStore::open(file).await?);
    open(file)?.execute_batch(BUSINESS_SCHEMA)?;
    Ok(())
}

/// Opens the file with bare rusqlite.
pub(crate) fn open(file: &Path) -> Result<Connection> {
    let conn = Connection::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    conn.execute_batch(SETTINGS)?;
    let synchronous: u32 = conn.query_row("PRAGMA synchronous", (), |row| row.get(0))?;
    ensure!(synchronous == 2, "synchronous is {synchronous}, and the benchmark is about FULL (2)");
    Ok(conn)
}

/// Counts what a run left: every saga completed, every step recorded, nothing to do, every business row once.
pub(crate) fn assert_rows(file: &Path, sagas: u32) -> Result<()> {
    let conn = open(file)?;
    assert_business_rows(&conn, sagas)?;
    let count = |query: &str| -> rusqlite::Result<u32> { conn.query_row(query, (), |row| row.get(0)) };
    let completed = count("SELECT count(*) FROM saga_progress WHERE status = 'completed'")?;
    let started = count("SELECT count(*) FROM saga_sagas")?;
    let records = count("SELECT count(*) FROM saga_records WHERE outcome = 'done'")?;
    let work = count("SELECT count(*) FROM saga_work")?;
    ensure!(started == sagas && completed == sagas, "{started} of {sagas} sagas are there, {completed} are completed");
    ensure!(records == sagas * STEPS_PER_SAGA, "{records} step records for {sagas} sagas");
    ensure!(work == 0, "{work} work rows are left");
    Ok(())
}
