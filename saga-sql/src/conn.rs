use std::future::Future;

use serde::de::DeserializeOwned;

use super::sealed::Sealed;
use super::{SqlError, SqlErrorKind, ToSql};

/// A connection to a database that speaks SQL, whichever it is: `rusqlite::Connection` with the feature `sqlite`, and
/// `sqlx::PgConnection` with the feature `postgres`.
///
/// Parameters stand in a statement as `$1`, `$2` and so on, on both databases. A statement is `&'static str`, since
/// values belong into its parameters.
///
/// # Examples
///
/// ```
/// use saga_core::{StepError, saga_step};
/// use saga_sql::SqlConn;
///
/// #[saga_step(no_compensation)]
/// async fn reserve_stock(tx: &mut impl SqlConn, pieces: i64) -> Result<i64, StepError> {
///     let changed = tx
///         .execute("UPDATE stock SET pieces = pieces - $1 WHERE pieces >= $1", &[&pieces])
///         .await?;
///     if changed == 0 {
///         return Err(StepError::reject("out of stock"));
///     }
///     Ok(tx.query_one("SELECT pieces FROM stock", &[]).await?)
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut conn = saga_sqlite::rusqlite::Connection::open_in_memory()?;
/// conn.execute_batch("CREATE TABLE stock (pieces BIGINT NOT NULL); INSERT INTO stock VALUES (5)")?;
/// assert_eq!(reserve_stock(&mut conn, 3).await.unwrap(), 2);
/// assert!(reserve_stock(&mut conn, 3).await.is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Cancel safety
/// In a step, the runtime rolls back what a dropped future wrote. Elsewhere a dropped statement on PostgreSQL leaves the
/// connection busy until the server has answered.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no connection that `saga_sql` knows",
    label = "not a connection to SQLite or PostgreSQL",
    note = "`rusqlite::Connection` is one with the feature `sqlite` of saga-sql, and `sqlx::PgConnection` with the feature `postgres`; a `MemoryStore` has no SQL, so test the step on a `SqliteStore`"
)]
pub trait SqlConn: Sealed + Send + 'static {
    /// Which database it is, for a statement that the databases write differently.
    const DIALECT: Dialect;

    /// Runs one statement, and returns how many rows it changed.
    ///
    /// # Errors
    /// When a parameter has no value, and when the database refuses the statement.
    fn execute(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<u64, SqlError>> + Send;

    /// Runs statements without parameters one after the other, for example those that create tables.
    ///
    /// # Errors
    /// When the database refuses one of them. The statements before it have run.
    fn execute_batch(&mut self, sql: &'static str) -> impl Future<Output = Result<(), SqlError>> + Send;

    /// Runs a query, and reads all its rows: into a struct by the names of the columns, into a tuple by their order, or
    /// a single column into its value.
    ///
    /// # Errors
    /// Those of [`execute`](Self::execute), and when a row is no `T`; the error names the column.
    fn query<T: DeserializeOwned + Send>(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<Vec<T>, SqlError>> + Send;

    /// Runs a query that gives one row.
    ///
    /// # Errors
    /// Those of [`query`](Self::query), and when there is no row or more than one.
    fn query_one<T: DeserializeOwned + Send>(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<T, SqlError>> + Send {
        let found = self.query_opt(sql, params);
        async move { found.await?.ok_or_else(|| wrong_count(sql, 0)) }
    }

    /// Runs a query that gives one row or none.
    ///
    /// # Errors
    /// Those of [`query`](Self::query), and when there is more than one row.
    fn query_opt<T: DeserializeOwned + Send>(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<Option<T>, SqlError>> + Send {
        let found = self.query(sql, params);
        async move {
            let mut rows = found.await?;
            if rows.len() > 1 { Err(wrong_count(sql, rows.len())) } else { Ok(rows.pop()) }
        }
    }
}

/// A database that speaks SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// SQLite
    Sqlite,
    /// PostgreSQL
    Postgres,
}

fn wrong_count(sql: &'static str, count: usize) -> SqlError {
    SqlError::new(SqlErrorKind::Row, sql, format!("the query gave {count} rows instead of one"))
}
