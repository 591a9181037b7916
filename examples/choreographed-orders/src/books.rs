//! The tables of the steps, on either database: the stock, and a journal of all effects.

use saga_core::StepError;
use saga_core::store::Store;
use saga_postgres::PostgresStore;
use saga_sqlite::SqliteStore;
use sqlx::PgConnection;

/// The initial stock of each product.
pub(crate) const ON_A_SHELF: i64 = 500;

/// One line of the journal: how often a step was done for an order, and how much of its effect remains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) what: String,
    pub(crate) order: String,
    pub(crate) times: i64,
    pub(crate) amount: i64,
}

/// A store whose connection can write the books.
pub(crate) trait Books: Store + Clone {
    /// Creates the tables.
    async fn prepare(&self) -> anyhow::Result<()>;

    /// Takes pieces from the stock; a negative number returns them. Returns whether there were enough.
    fn take(conn: &mut Self::Conn, sku: &str, pieces: i64) -> impl Future<Output = Result<bool, StepError>> + Send;

    /// Adds a line to the journal. No constraint prevents duplicates.
    fn note(
        conn: &mut Self::Conn,
        what: &str,
        order: &str,
        amount: i64,
    ) -> impl Future<Output = Result<(), StepError>> + Send;

    /// The journal, by step and order.
    async fn journal(&self) -> anyhow::Result<Vec<Entry>>;
}

const TABLES: &str =
    "CREATE TABLE IF NOT EXISTS shelves (sku TEXT PRIMARY KEY, pieces BIGINT NOT NULL CHECK (pieces >= 0));
     CREATE TABLE IF NOT EXISTS journal (what TEXT NOT NULL, order_key TEXT NOT NULL, amount BIGINT NOT NULL)";
const JOURNAL: &str = "SELECT what, order_key, count(*), CAST(sum(amount) AS BIGINT) FROM journal GROUP BY what, order_key ORDER BY what, order_key";

impl Books for SqliteStore {
    async fn prepare(&self) -> anyhow::Result<()> {
        self.write(|conn| -> anyhow::Result<()> { Ok(conn.execute_batch(TABLES)?) }).await
    }

    async fn take(conn: &mut rusqlite::Connection, sku: &str, pieces: i64) -> Result<bool, StepError> {
        conn.execute("INSERT INTO shelves VALUES (?1, ?2) ON CONFLICT DO NOTHING", (sku, ON_A_SHELF))?;
        let taken = "UPDATE shelves SET pieces = pieces - ?2 WHERE sku = ?1 AND pieces >= ?2";
        Ok(conn.execute(taken, (sku, pieces))? == 1)
    }

    async fn note(conn: &mut rusqlite::Connection, what: &str, order: &str, amount: i64) -> Result<(), StepError> {
        conn.execute("INSERT INTO journal VALUES (?1, ?2, ?3)", (what, order, amount))?;
        Ok(())
    }

    async fn journal(&self) -> anyhow::Result<Vec<Entry>> {
        self.read(|conn| -> anyhow::Result<Vec<Entry>> {
            let mut journal = conn.prepare(JOURNAL)?;
            let entries = journal.query_map([], |row| {
                Ok(Entry { what: row.get(0)?, order: row.get(1)?, times: row.get(2)?, amount: row.get(3)? })
            })?;
            Ok(entries.collect::<Result<_, _>>()?)
        })
        .await
    }
}

impl Books for PostgresStore {
    async fn prepare(&self) -> anyhow::Result<()> {
        Ok(sqlx::raw_sql(TABLES).execute(self.pool()).await.map(drop)?)
    }

    async fn take(conn: &mut PgConnection, sku: &str, pieces: i64) -> Result<bool, StepError> {
        let shelf = "INSERT INTO shelves VALUES ($1, $2) ON CONFLICT DO NOTHING";
        sqlx::query(shelf).bind(sku).bind(ON_A_SHELF).execute(&mut *conn).await?;
        let taken = "UPDATE shelves SET pieces = pieces - $2 WHERE sku = $1 AND pieces >= $2";
        Ok(sqlx::query(taken).bind(sku).bind(pieces).execute(conn).await?.rows_affected() == 1)
    }

    async fn note(conn: &mut PgConnection, what: &str, order: &str, amount: i64) -> Result<(), StepError> {
        let line = "INSERT INTO journal VALUES ($1, $2, $3)";
        sqlx::query(line).bind(what).bind(order).bind(amount).execute(conn).await?;
        Ok(())
    }

    async fn journal(&self) -> anyhow::Result<Vec<Entry>> {
        let rows: Vec<(String, String, i64, i64)> = sqlx::query_as(JOURNAL).fetch_all(self.pool()).await?;
        let entry = |(what, order, times, amount)| Entry { what, order, times, amount };
        Ok(rows.into_iter().map(entry).collect())
    }
}
