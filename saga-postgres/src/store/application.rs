use saga_core::store::StoreError;
use sqlx::{Executor as _, PgConnection};

use crate::PostgresStore;
use crate::error::{begin_error, commit_error};

/// The operation in the errors of the application's own transactions.
const OPERATION: &str = "write";

/// The application's own work in the database.
impl PostgresStore {
    /// Runs a transaction of the application, outside all sagas, on a connection of the store. An error of the closure
    /// rolls it back.
    ///
    /// The closure may start sagas in its transaction.
    ///
    /// # Errors
    /// Those of the closure; and those of the store, when no connection is free in time or the commit fails.
    ///
    /// # Cancel safety
    /// Dropped before the commit, nothing is written. Dropped during the commit, it is unknown whether it is.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use saga_postgres::{PostgresStore, sqlx};
    ///
    /// let store = PostgresStore::connect("postgres://localhost/shop").await?;
    /// let products: i64 = store
    ///     .write(async |conn| -> Result<_, Box<dyn std::error::Error + Send + Sync>> {
    ///         sqlx::query("INSERT INTO products (sku) VALUES ('TEA')").execute(&mut *conn).await?;
    ///         Ok(sqlx::query_scalar("SELECT count(*) FROM products").fetch_one(&mut *conn).await?)
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn write<T, E: From<StoreError>>(
        &self,
        write: impl AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut conn = self.acquire(OPERATION).await?;
        let begun = conn.execute(sqlx::raw_sql(self.shared().options.begin())).await;
        begun.map_err(|error| begin_error(OPERATION, error))?;
        let written = write(&mut conn).await;
        let end = if written.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = conn.execute(sqlx::raw_sql(end)).await;
        match (written, ended) {
            (Ok(value), Ok(_)) => {
                conn.release();
                Ok(value)
            }
            (Ok(_), Err(error)) => Err(commit_error(OPERATION, error).into()),
            (Err(error), ended) => {
                // Otherwise the connection is closed, which rolls back too.
                if ended.is_ok() {
                    conn.release();
                }
                Err(error)
            }
        }
    }
}
