//! Parameters of a statement.

use std::error::Error;

use saga_postgres::sqlx::Arguments as _;
use saga_postgres::sqlx::postgres::PgArguments;
use saga_postgres::sqlx::types::Json;
use serde_json::value::RawValue;

use super::time::Time;
use crate::{SqlError, SqlErrorKind, SqlType, SqlValue, ToSql};

/// The parameters as sqlx takes them.
pub(super) fn arguments(sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<PgArguments, SqlError> {
    let mut arguments = PgArguments::default();
    for param in params {
        let added = param.to_sql().and_then(|value| add(&mut arguments, value));
        added.map_err(|error| SqlError::new(SqlErrorKind::Parameter, sql, error))?;
    }
    Ok(arguments)
}

fn add(arguments: &mut PgArguments, value: SqlValue<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
    match value {
        SqlValue::Null(ty) => add_null(arguments, ty),
        SqlValue::Integer(number) => arguments.add(number),
        SqlValue::Real(number) => arguments.add(number),
        SqlValue::Text(text) => arguments.add(&*text),
        SqlValue::Blob(bytes) => arguments.add(&*bytes),
        SqlValue::Bool(value) => arguments.add(value),
        SqlValue::Time(time) => arguments.add(Time::from(time)),
        SqlValue::Json(json) => arguments.add(Json(&*json)),
    }
}

/// A statement is prepared once for each text, so a parameter has the same type whether it is `NULL` or not.
fn add_null(arguments: &mut PgArguments, ty: SqlType) -> Result<(), Box<dyn Error + Send + Sync>> {
    match ty {
        SqlType::Integer => arguments.add(None::<i64>),
        SqlType::Real => arguments.add(None::<f64>),
        SqlType::Text => arguments.add(None::<&str>),
        SqlType::Blob => arguments.add(None::<&[u8]>),
        SqlType::Bool => arguments.add(None::<bool>),
        SqlType::Time => arguments.add(None::<Time>),
        SqlType::Json => arguments.add(None::<Json<&RawValue>>),
    }
}
