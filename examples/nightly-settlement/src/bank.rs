//! A simulated bank. It keeps its own journal, honours keys, and sometimes does not answer.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _};
use serde::{Deserialize, Serialize};

/// How long the bank takes for a payment.
const PAYMENT_TAKES: Duration = Duration::from_millis(2);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS payments (key TEXT PRIMARY KEY, batch TEXT NOT NULL, cents INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS closed (batch TEXT PRIMARY KEY, payments INTEGER NOT NULL, cents INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS calls (what TEXT NOT NULL)";

/// A client of the bank.
#[derive(Debug, Clone)]
pub(crate) struct Bank {
    file: PathBuf,
}

/// The bank's receipt for a closed batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) payments: u32,
    pub(crate) cents: i64,
}

/// The bank's journal.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) payments: u32,
    pub(crate) cents: i64,
    /// How often it was asked to collect.
    pub(crate) asked: u32,
    /// How often it was asked to close.
    pub(crate) closed: u32,
}

impl Bank {
    /// The bank that keeps its book in this folder.
    ///
    /// # Errors
    /// The book cannot be written.
    pub(crate) fn in_folder(folder: &Path) -> rusqlite::Result<Self> {
        let bank = Self { file: folder.join("bank.db") };
        let book = bank.open()?;
        book.pragma_update(None, "journal_mode", "wal")?;
        book.execute_batch(TABLES)?;
        Ok(bank)
    }

    /// Collects a payment. The same key collects it once.
    ///
    /// # Errors
    /// The bank did not answer.
    ///
    /// # Cancel safety
    /// If it is dropped, the payment may have been collected.
    pub(crate) async fn collect(&self, batch: &str, order: &str, cents: i64) -> rusqlite::Result<()> {
        tokio::time::sleep(PAYMENT_TAKES).await;
        let book = self.open()?;
        book.execute("INSERT INTO calls VALUES ('collect')", [])?;
        let sql = "INSERT INTO payments VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        book.execute(sql, (format!("{batch}/{order}"), batch, cents))?;
        Ok(())
    }

    /// Closes a batch. The answer of the first call is lost.
    ///
    /// # Errors
    /// The bank did not answer.
    pub(crate) fn close(&self, batch: &str) -> anyhow::Result<Receipt> {
        let book = self.open()?;
        book.execute("INSERT INTO calls VALUES ('close')", [])?;
        let sql = "INSERT INTO closed SELECT ?1, count(*), coalesce(sum(cents), 0) FROM payments WHERE batch = ?1 \
             ON CONFLICT DO NOTHING";
        if book.execute(sql, [batch])? == 1 {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the bank's answer was lost").into());
        }
        self.find(batch)?.ok_or_else(|| anyhow::anyhow!("the bank has no batch {batch}"))
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let book = Connection::open(&self.file)?;
        // The bank survives its customers; it need not survive a power loss.
        book.pragma_update(None, "synchronous", "off")?;
        Ok(book)
    }

    /// The receipt of a batch, once it is closed.
    ///
    /// # Errors
    /// The bank cannot be reached.
    pub(crate) fn find(&self, batch: &str) -> rusqlite::Result<Option<Receipt>> {
        let sql = "SELECT payments, cents FROM closed WHERE batch = ?1";
        let receipt = |row: &rusqlite::Row<'_>| Ok(Receipt { payments: row.get(0)?, cents: row.get(1)? });
        self.open()?.query_row(sql, [batch], receipt).optional()
    }

    /// The content of the journal.
    ///
    /// # Errors
    /// The book cannot be read.
    pub(crate) fn book(&self) -> rusqlite::Result<Book> {
        let sql = "SELECT (SELECT count(*) FROM payments), (SELECT coalesce(sum(cents), 0) FROM payments), \
             (SELECT count(*) FROM calls WHERE what = 'collect'), (SELECT count(*) FROM calls WHERE what = 'close')";
        self.open()?.query_row(sql, [], |row| {
            Ok(Book { payments: row.get(0)?, cents: row.get(1)?, asked: row.get(2)?, closed: row.get(3)? })
        })
    }
}
