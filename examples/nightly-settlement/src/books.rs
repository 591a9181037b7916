//! The company's own books: the orders, and the nights in which they were settled.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rusqlite::Connection;
use serde::Deserialize;

/// The orders of Northwind, which `examples/order-saga` brings along.
const NORTHWIND: &str = include_str!("../../order-saga/data/northwind-orders.jsonl");

const TABLES: &str = "
    CREATE TABLE orders (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, customer TEXT NOT NULL, cents INTEGER NOT NULL, night TEXT
    );
    CREATE TABLE nights (night TEXT PRIMARY KEY, orders INTEGER NOT NULL, cents INTEGER NOT NULL)";

/// An order as it stands in a file. What else is there is not looked at.
#[derive(Debug, Deserialize)]
struct Placed {
    order_id: String,
    customer: String,
    total_cents: i64,
}

/// An order that is to be settled.
#[derive(Debug)]
pub(crate) struct Unsettled {
    /// Its place in the book.
    pub(crate) number: u32,
    pub(crate) id: String,
    pub(crate) cents: i64,
}

/// The way to the books, for what reads them outside of a step's transaction.
#[derive(Debug, Clone)]
pub(crate) struct Books {
    file: PathBuf,
}

impl Books {
    /// The books in this folder. The sagas stand in the same file.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { file: folder.join("books.db") }
    }

    /// The file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Writes new books with the orders of a file; without one with those of Northwind.
    ///
    /// # Errors
    /// A sentence that names the line that is no order.
    pub(crate) fn begin(&self, file: Option<&Path>) -> anyhow::Result<()> {
        let read =
            |path: &Path| std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
        let orders = file.map_or(Ok(NORTHWIND.to_owned()), read)?;
        let name = file.map_or("the sample".to_owned(), |path| path.display().to_string());
        let mut book = Connection::open(&self.file)?;
        book.execute_batch(TABLES)?;
        let tx = book.transaction()?;
        for (index, line) in orders.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let place = || format!("line {} of {name} is no order", index + 1);
            let Placed { order_id, customer, total_cents } = serde_json::from_str(line).with_context(place)?;
            let sql = "INSERT INTO orders (id, customer, cents) VALUES (?1, ?2, ?3)";
            tx.execute(sql, (order_id, customer, total_cents)).with_context(place)?;
        }
        Ok(tx.commit()?)
    }

    /// The orders of a night behind that place.
    ///
    /// # Errors
    /// The books cannot be read.
    pub(crate) fn of_night(&self, night: &str, behind: u32) -> rusqlite::Result<Vec<Unsettled>> {
        let book = Connection::open(&self.file)?;
        let mut orders =
            book.prepare("SELECT number, id, cents FROM orders WHERE night = ?1 AND number > ?2 ORDER BY number")?;
        let order =
            |row: &rusqlite::Row<'_>| Ok(Unsettled { number: row.get(0)?, id: row.get(1)?, cents: row.get(2)? });
        orders.query_map((night, behind), order)?.collect()
    }

    /// How many orders the nights have settled, and for how much.
    ///
    /// # Errors
    /// The books cannot be read.
    pub(crate) fn settled(&self) -> rusqlite::Result<(u32, i64)> {
        let sql = "SELECT coalesce(sum(orders), 0), coalesce(sum(cents), 0) FROM nights";
        Connection::open(&self.file)?.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}
