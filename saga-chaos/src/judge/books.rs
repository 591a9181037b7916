use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use rusqlite::{Connection, OpenFlags};
use sqlx::{Connection as _, PgConnection, Row as _};

/// What was committed in the shop's database, by its own journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) at_micros: i64,
    pub(crate) transaction: u64,
    pub(crate) process: String,
    pub(crate) order: String,
    pub(crate) step: String,
    pub(crate) is_undo: bool,
}

/// A line in the journal of the services outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at_micros: i64,
    pub(crate) path: String,
    pub(crate) key: String,
    pub(crate) nth: u32,
    pub(crate) event: String,
    pub(crate) number: Option<i64>,
}

/// Something that was done outside, by the books of what was charged and booked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) path: &'static str,
    pub(crate) number: i64,
    pub(crate) key: String,
}

/// The books of those who know nothing of the runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Books {
    pub(crate) shop: Vec<Written>,
    pub(crate) outside: Vec<Line>,
    pub(crate) done: Vec<Done>,
}

impl Books {
    /// Reads everything.
    pub(crate) async fn read(shop: &str, outside: &Path) -> anyhow::Result<Self> {
        let (outside, done) = read_outside(outside).context("cannot read the book of the services outside")?;
        Ok(Self { shop: read_shop(shop).await.context("cannot read the shop's journal")?, outside, done })
    }
}

/// One line for each transaction that did a step, however many rows it wrote.
async fn read_shop(url: &str) -> anyhow::Result<Vec<Written>> {
    let mut conn = PgConnection::connect(url).await?;
    let rows = sqlx::query(
        "SELECT (extract(epoch FROM min(at)) * 1000000)::bigint AS at, xact, min(process) AS process, order_id, step, undo
         FROM chaos.journal GROUP BY order_id, step, undo, xact ORDER BY min(id)",
    );
    let rows = rows.fetch_all(&mut conn).await?;
    let written = |row: &sqlx::postgres::PgRow| {
        Ok(Written {
            at_micros: row.try_get("at")?,
            transaction: row.try_get::<String, _>("xact")?.parse().context("the number of a transaction")?,
            process: row.try_get("process")?,
            order: row.try_get("order_id")?,
            step: row.try_get("step")?,
            is_undo: row.try_get("undo")?,
        })
    };
    rows.iter().map(written).collect()
}

fn read_outside(path: &Path) -> rusqlite::Result<(Vec<Line>, Vec<Done>)> {
    let book = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    book.busy_timeout(Duration::from_secs(10))?;
    let mut lines = book.prepare("SELECT at_micros, path, key, nth, event, number FROM journal ORDER BY id")?;
    let line = |row: &rusqlite::Row<'_>| {
        Ok(Line {
            at_micros: row.get(0)?,
            path: row.get(1)?,
            key: row.get(2)?,
            nth: row.get(3)?,
            event: row.get(4)?,
            number: row.get(5)?,
        })
    };
    let lines = lines.query_map([], line)?.collect::<rusqlite::Result<_>>()?;
    let mut done = Vec::new();
    for (path, table) in [("/charges", "charges"), ("/shipments", "shipments")] {
        let mut rows = book.prepare(&format!("SELECT id, key FROM {table} ORDER BY id"))?;
        let rows = rows.query_map([], |row| Ok(Done { path, number: row.get(0)?, key: row.get(1)? }))?;
        for row in rows {
            done.push(row?);
        }
    }
    Ok((lines, done))
}
