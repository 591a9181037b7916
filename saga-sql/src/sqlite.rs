//! SQLite: the connection and the store of `saga-sqlite`.

use std::borrow::Cow;

use saga_core::store::{StoreError, Timestamp};
use saga_sqlite::SqliteStore;
use saga_sqlite::rusqlite::types::{Null, ValueRef};
use saga_sqlite::rusqlite::{self, CachedStatement, Connection, ffi};
use serde::de::DeserializeOwned;

use super::cell::{Cell, RowError};
use super::row::{self, Row};
use super::sealed::Sealed;
use super::{Dialect, SqlConn, SqlError, SqlErrorKind, SqlStore, SqlValue, ToSql};

impl Sealed for Connection {}

impl SqlConn for Connection {
    const DIALECT: Dialect = Dialect::Sqlite;

    async fn execute(&mut self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<u64, SqlError> {
        let mut statement = prepare(self, sql, params)?;
        let changed = statement.raw_execute().map_err(|error| refused(sql, error))?;
        Ok(changed as u64)
    }

    async fn execute_batch(&mut self, sql: &'static str) -> Result<(), SqlError> {
        Self::execute_batch(self, sql).map_err(|error| refused(sql, error))
    }

    async fn query<T: DeserializeOwned + Send>(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<T>, SqlError> {
        let mut statement = prepare(self, sql, params)?;
        let mut rows = statement.raw_query();
        let mut values = Vec::new();
        while let Some(row) = rows.next().map_err(|error| refused(sql, error))? {
            values.push(row::read(row).map_err(|error| SqlError::new(SqlErrorKind::Row, sql, error))?);
        }
        Ok(values)
    }
}

impl Sealed for SqliteStore {}

impl SqlStore for SqliteStore {
    async fn transaction<T, E>(
        &self,
        run: impl AsyncFnMut(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.write_async(run).await
    }
}

/// The statement with its parameters. It is prepared once for each connection.
fn prepare<'c>(
    conn: &'c Connection,
    sql: &'static str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<CachedStatement<'c>, SqlError> {
    let mut statement = conn.prepare_cached(sql).map_err(|error| refused(sql, error))?;
    let wrong = |problem: String| SqlError::new(SqlErrorKind::Parameter, sql, problem);
    if statement.parameter_count() != params.len() {
        let (has, given) = (statement.parameter_count(), params.len());
        return Err(wrong(format!("the statement has {has} parameters, and {given} values were given")));
    }
    for (number, param) in (1..).zip(params) {
        let value = param.to_sql().map_err(|error| SqlError::new(SqlErrorKind::Parameter, sql, error))?;
        let place = place_of(&statement, number).map_err(|error| refused(sql, error))?;
        let place = place.ok_or_else(|| {
            wrong(format!("the statement has no parameter ${number}; parameters are written $1, $2 and so on"))
        })?;
        bind(&mut statement, place, value).map_err(|error| refused(sql, error))?;
    }
    Ok(statement)
}

/// To SQLite `$2` is a name, and its place is where it stands first; mostly the places are as the numbers.
fn place_of(statement: &CachedStatement<'_>, number: usize) -> rusqlite::Result<Option<usize>> {
    let is_number = |name: &str| name.strip_prefix('$').is_some_and(|digits| digits.parse() == Ok(number));
    if statement.parameter_name(number).is_some_and(is_number) {
        return Ok(Some(number));
    }
    statement.parameter_index(&format!("${number}"))
}

fn bind(statement: &mut CachedStatement<'_>, place: usize, value: SqlValue<'_>) -> rusqlite::Result<()> {
    match value {
        SqlValue::Null(_) => statement.raw_bind_parameter(place, Null),
        SqlValue::Integer(number) => statement.raw_bind_parameter(place, number),
        SqlValue::Real(number) => statement.raw_bind_parameter(place, number),
        SqlValue::Text(text) => statement.raw_bind_parameter(place, &*text),
        SqlValue::Blob(bytes) => statement.raw_bind_parameter(place, &*bytes),
        SqlValue::Bool(value) => statement.raw_bind_parameter(place, value),
        SqlValue::Time(time) => statement.raw_bind_parameter(place, Timestamp::from(time).to_string()),
        SqlValue::Json(json) => statement.raw_bind_parameter(place, json.get()),
    }
}

impl Row for rusqlite::Row<'_> {
    fn columns(&self) -> usize {
        self.as_ref().column_count()
    }

    fn name(&self, column: usize) -> &str {
        self.as_ref().column_name(column).unwrap_or("?")
    }

    fn cell(&self, column: usize) -> Result<Cell<'_>, RowError> {
        let value = self.get_ref(column).map_err(|error| RowError(error.to_string()))?;
        Ok(match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text)),
            ValueRef::Blob(bytes) => Cell::Blob(Cow::Borrowed(bytes)),
        })
    }
}

fn refused(sql: &'static str, error: rusqlite::Error) -> SqlError {
    let kind = match error.sqlite_error() {
        Some(failure) if failure.code == rusqlite::ErrorCode::ConstraintViolation => match failure.extended_code {
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => {
                SqlErrorKind::UniqueViolation
            }
            _ => SqlErrorKind::ConstraintViolation,
        },
        _ => SqlErrorKind::Database,
    };
    SqlError::new(kind, sql, error)
}
