//! Counting on the writer's own thread and in the file.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use rusqlite::trace::{TraceEvent, TraceEventCodes};
use saga_sqlite::SqliteStore;

use crate::cost::Cost;
use crate::support::Error;

/// What stands before the first page of the log, and before each page of it.
const LOG_HEADER_BYTES: u64 = 32;
const PAGE_HEADER_BYTES: u64 = 24;
const PAGE_BYTES: u64 = 4_096;

thread_local! {
    /// The statements of the writer that this thread is.
    static STATEMENTS: Cell<u64> = const { Cell::new(0) };
}

/// Counts what a store does.
pub(crate) struct Meter {
    store: SqliteStore,
    /// What reading the counters costs by itself.
    own: u64,
}

impl Meter {
    pub(crate) async fn new(store: &SqliteStore) -> Self {
        let trace = |conn: &mut rusqlite::Connection| -> Result<(), Error> {
            conn.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(count));
            Ok(())
        };
        store.write(trace).await.unwrap();
        let mut meter = Self { store: store.clone(), own: 0 };
        meter.own = meter.of(async {}).await.statements;
        meter
    }

    /// What `work` costs.
    pub(crate) async fn of(&self, work: impl Future<Output = ()>) -> Cost {
        let (statements, commits, pages) = (self.statements().await, self.store.statistics().commits, self.pages());
        work.await;
        let cost = Cost {
            commits: self.store.statistics().commits - commits,
            pages: self.pages() - pages,
            statements: self.statements().await - statements - self.own,
        };
        assert!(self.pages() >= pages, "the log was begun anew in the middle");
        cost
    }

    /// Begins the log anew, so that what is written next makes it longer.
    pub(crate) fn empty_log(&self) {
        let conn = rusqlite::Connection::open(self.store.path()).unwrap();
        let is_busy: bool = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0)).unwrap();
        assert!(!is_busy, "somebody reads the log");
    }

    async fn statements(&self) -> u64 {
        self.store.write(|_| -> Result<u64, Error> { Ok(STATEMENTS.get()) }).await.unwrap()
    }

    fn pages(&self) -> u64 {
        let log = PathBuf::from(format!("{}-wal", self.store.path().display()));
        let bytes = fs::metadata(log).unwrap().len();
        bytes.saturating_sub(LOG_HEADER_BYTES) / (PAGE_HEADER_BYTES + PAGE_BYTES)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "SQLite's trace hands it so")]
fn count(event: TraceEvent<'_>) {
    // What a trigger runs comes as a comment.
    if let TraceEvent::Stmt(_, sql) = event
        && !sql.starts_with("--")
    {
        STATEMENTS.set(STATEMENTS.get() + 1);
    }
}
