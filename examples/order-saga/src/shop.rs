//! The shop's own tables, in the same file as the saga store: a step commits to both at once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use rusqlite::{Connection, params};
use saga_cli::OpenStore;
use saga_sqlite::{SqliteOptions, SqliteStore};

use crate::orders::{Line, Product};

/// How long a statement of the shop waits for a transaction of the runtime.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait for another process that works on the file: a person waits too.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(5);

/// The file with the shop's tables and the saga store.
pub(crate) struct Shop {
    file: PathBuf,
}

impl Shop {
    pub(crate) fn at(file: PathBuf) -> Self {
        Self { file }
    }

    /// Creates the tables, and adds the products that the shop does not have yet.
    pub(crate) fn set_up(&self, products: &[Line<Product>]) -> anyhow::Result<()> {
        let mut conn = Connection::open(&self.file)?;
        conn.busy_timeout(BUSY_TIMEOUT)?;
        create_tables(&conn)?;
        let tx = conn.transaction()?;
        for Line { content: Product { sku, name, in_stock }, .. } in products {
            tx.execute(
                "INSERT INTO products (sku, name, in_stock, in_stock_at_first) VALUES (?1, ?2, ?3, ?3)
                 ON CONFLICT (sku) DO NOTHING",
                params![sku, name, in_stock],
            )?;
        }
        Ok(tx.commit()?)
    }

    /// The file of the external services, beside the shop's file.
    pub(crate) fn outside(&self) -> PathBuf {
        self.file.with_added_extension("outside")
    }
}

/// Opens the store for the operator's commands.
impl OpenStore for Shop {
    type Store = SqliteStore;

    fn name(&self) -> String {
        self.file.display().to_string()
    }

    async fn open(&self) -> anyhow::Result<SqliteStore> {
        let waits = |file: &Path| eprintln!("waiting for another process that works on {}", file.display());
        let options = SqliteOptions::new(&self.file).wait_for_lock(WAIT_FOR_LOCK).on_wait(waits);
        Ok(SqliteStore::open_with(options).await?)
    }

    async fn open_read_only(&self) -> anyhow::Result<SqliteStore> {
        ensure!(self.file.exists(), "there is no {}; `order-saga run` makes it", self.file.display());
        Ok(SqliteStore::open_with(SqliteOptions::new(&self.file).read_only()).await?)
    }
}

pub(crate) fn create_tables(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS products (
             sku               TEXT    PRIMARY KEY,
             name              TEXT    NOT NULL,
             in_stock          INTEGER NOT NULL CHECK (in_stock >= 0),
             in_stock_at_first INTEGER NOT NULL
         ) STRICT;
         CREATE TABLE IF NOT EXISTS orders (
             order_id    TEXT    PRIMARY KEY,
             customer    TEXT    NOT NULL,
             total_cents INTEGER NOT NULL,
             status      TEXT    NOT NULL CHECK (status IN ('placed', 'confirmed', 'cancelled')),
             reason      TEXT
         ) STRICT;",
    )
}
