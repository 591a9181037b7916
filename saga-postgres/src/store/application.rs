use saga_core::store::{StoreError, StoreErrorKind};
use sqlx::{Executor as _, PgConnection};

use crate::PostgresStore;
use crate::error::{FAILED_TRANSACTION, begin_error, commit_error, sql_state};

/// The operation in the errors of the application's own transactions.
const OPERATION: &str = "write";

/// PostgreSQL answers the `COMMIT` of a transaction in which a statement failed as if it had committed. Any other statement is refused there.
const COMMIT: &str = "SELECT 1; COMMIT";

/// The application's own work in the database.
impl PostgresStore {
    /// Runs a transaction of the application, outside all sagas, on a connection of the store. An error of the closure
    /// rolls it back.
    ///
    /// The closure may start sagas in its transaction.
    ///
    /// # Errors
    /// Those of the closure; and those of the store, when no connection is free in time, the commit fails, or a statement failed and the
    /// closure returned `Ok`.
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
        let end = if written.is_ok() { COMMIT } else { "ROLLBACK" };
        let ended = conn.execute(sqlx::raw_sql(end)).await;
        match (written, ended) {
            (Ok(value), Ok(_)) => {
                conn.release();
                Ok(value)
            }
            (Ok(_), Err(error)) if sql_state(&error).is_some_and(|state| state == FAILED_TRANSACTION) => {
                let detail = "a statement failed and the closure returned `Ok` all the same, so nothing was written: PostgreSQL rolls such \
                              a transaction back; return the error, or run the statement behind a `SAVEPOINT` or with `ON CONFLICT DO NOTHING`";
                Err(StoreError::new(StoreErrorKind::Misuse, OPERATION, detail).with_source(error).into())
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
