use saga_core::store::StoreError;
use saga_postgres::PostgresStore;
use saga_postgres::sqlx::error::{DatabaseError, ErrorKind};
use saga_postgres::sqlx::postgres::PgArguments;
use saga_postgres::sqlx::query::Query;
use saga_postgres::sqlx::{self, Connection as _, Executor as _, PgConnection, Postgres};
use serde::de::DeserializeOwned;

use super::arguments::arguments;
use crate::sealed::Sealed;
use crate::{Dialect, SqlConn, SqlError, SqlErrorKind, SqlStore, ToSql, row};

impl Sealed for PgConnection {}

impl SqlConn for PgConnection {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn execute(&mut self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<u64, SqlError> {
        let done = statement(self, sql, params)?.execute(self).await;
        Ok(done.map_err(|error| refused(sql, error))?.rows_affected())
    }

    async fn execute_batch(&mut self, sql: &'static str) -> Result<(), SqlError> {
        sqlx::Executor::execute(self, sqlx::raw_sql(sql)).await.map_err(|error| refused(sql, error))?;
        Ok(())
    }

    async fn query<T: DeserializeOwned + Send>(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<T>, SqlError> {
        let rows = self.fetch_all(statement(self, sql, params)?).await.map_err(|error| refused(sql, error))?;
        let wrong = |error| SqlError::new(SqlErrorKind::Row, sql, error);
        rows.iter().map(|row| row::read(row).map_err(wrong)).collect()
    }
}

impl Sealed for PostgresStore {}

impl SqlStore for PostgresStore {
    async fn transaction<T, E>(
        &self,
        run: impl AsyncFnMut(&mut PgConnection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.write(run).await
    }
}

/// The statement with its parameters. It is prepared under a name only on a connection that has kept such a statement, as
/// each one of a store has; behind PgBouncer in transaction mode none does.
fn statement<'q>(
    conn: &PgConnection,
    sql: &'static str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Query<'q, Postgres, PgArguments>, SqlError> {
    let keeps_statements = conn.cached_statements_size() > 0;
    Ok(sqlx::query_with(sql, arguments(sql, params)?).persistent(keeps_statements))
}

fn refused(sql: &'static str, error: sqlx::Error) -> SqlError {
    let kind = match error.as_database_error().map(DatabaseError::kind) {
        Some(ErrorKind::UniqueViolation) => SqlErrorKind::UniqueViolation,
        Some(ErrorKind::ForeignKeyViolation | ErrorKind::NotNullViolation | ErrorKind::CheckViolation) => {
            SqlErrorKind::ConstraintViolation
        }
        _ => SqlErrorKind::Database,
    };
    SqlError::new(kind, sql, error)
}
