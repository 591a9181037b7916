//! Single statements on a connection of the pool.
//!
//! They are planned each time, for the tables as they are then: a cached plan could be one for empty tables. The most
//! frequent statements are in functions, which keep index plans.

use saga_core::store::StoreError;
use sqlx::Postgres;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;

use crate::error::{commit_error, store_error};
use crate::store::store::PostgresStore;

impl PostgresStore {
    /// Runs one statement that commits by itself, or in a transaction where that is not certain; answers how many rows
    /// it wrote.
    pub(crate) async fn execute(
        &self,
        operation: &'static str,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Result<u64, StoreError> {
        if self.autocommits() {
            let mut conn = self.acquire(operation).await?;
            let done =
                query.persistent(false).execute(&mut *conn).await.map_err(|error| commit_error(operation, error));
            conn.release_if_usable(&done);
            return done.map(|done| done.rows_affected());
        }
        self.in_transaction(operation, move |conn| {
            Box::pin(async move {
                let done =
                    query.persistent(false).execute(conn).await.map_err(|error| store_error(operation, error))?;
                Ok(done.rows_affected())
            })
        })
        .await
    }

    /// Runs one statement that writes and returns rows, as [`execute`](Self::execute) does.
    pub(crate) async fn write_rows(
        &self,
        operation: &'static str,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        self.rows_of(operation, query.persistent(false)).await
    }

    /// Calls a function of the schema that runs often and has its own plans.
    pub(crate) async fn call_rows(
        &self,
        operation: &'static str,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        self.rows_of(operation, query.persistent(self.prepares_statements())).await
    }

    async fn rows_of(
        &self,
        operation: &'static str,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        if self.autocommits() {
            let mut conn = self.acquire(operation).await?;
            let rows = query.fetch_all(&mut *conn).await.map_err(|error| commit_error(operation, error));
            conn.release_if_usable(&rows);
            return rows;
        }
        self.in_transaction(operation, move |conn| {
            Box::pin(async move { query.fetch_all(conn).await.map_err(|error| store_error(operation, error)) })
        })
        .await
    }

    /// Reads on a connection of the pool.
    pub(crate) async fn read_rows(
        &self,
        operation: &'static str,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        if self.shared().options.pgbouncer {
            // A statement is prepared and run by two messages, which reach one session only inside a transaction.
            return self.write_rows(operation, query).await;
        }
        let mut conn = self.acquire(operation).await?;
        let rows = query.persistent(false).fetch_all(&mut *conn).await.map_err(|error| store_error(operation, error));
        conn.release_if_usable(&rows);
        rows
    }

    /// Whether the most frequent statements may be prepared under a name, with a cached plan.
    pub(crate) fn prepares_statements(&self) -> bool {
        !self.shared().options.pgbouncer
    }

    /// Whether a statement outside a transaction commits by itself. A pool of the application may hand out a connection
    /// inside a transaction; behind PgBouncer a statement needs a transaction to stay in its session; and a test may
    /// lose the answer to a commit.
    pub(crate) fn autocommits(&self) -> bool {
        self.shared().owns_pool && !self.commit_fault.is_set() && !self.shared().options.pgbouncer
    }
}
