use std::future::Future;

use saga_core::store::{Store, StoreError};

use super::SqlConn;
use super::sealed::Sealed;

/// A store whose transactions are a [`SqlConn`]: `SqliteStore` with the feature `sqlite`, and `PostgresStore` with the
/// feature `postgres`.
pub trait SqlStore: Store<Conn: SqlConn> + Sealed {
    /// Runs statements of the application in a transaction outside all sagas: it creates tables, or reads a report. An
    /// error of the closure rolls it back.
    ///
    /// The closure may start sagas in its transaction. It may be called again when the transaction could not commit, so
    /// it must have no effect outside its connection.
    ///
    /// # Errors
    /// Those of the closure; and those of the store.
    ///
    /// # Cancel safety
    /// Dropping it loses the answer; whether the transaction commits is then unknown.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("shop.db");
    /// use saga_sql::{SqlConn, SqlStore};
    /// use saga_sqlite::SqliteStore;
    ///
    /// let store = SqliteStore::open(&path).await?;
    /// let products: i64 = store
    ///     .transaction(async |conn| -> anyhow::Result<_> {
    ///         conn.execute_batch("CREATE TABLE IF NOT EXISTS products (sku TEXT PRIMARY KEY)").await?;
    ///         conn.execute("INSERT INTO products (sku) VALUES ($1)", &[&"TEA"]).await?;
    ///         Ok(conn.query_one("SELECT count(*) FROM products", &[]).await?)
    ///     })
    ///     .await?;
    /// assert_eq!(products, 1);
    /// # Ok(())
    /// # }
    /// ```
    fn transaction<T, E>(
        &self,
        run: impl AsyncFnMut(&mut Self::Conn) -> Result<T, E> + Send + 'static,
    ) -> impl Future<Output = Result<T, E>>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static;
}
