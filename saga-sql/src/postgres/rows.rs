//! Rows of a query.

use std::borrow::Cow;

use saga_postgres::sqlx::postgres::PgRow;
use saga_postgres::sqlx::types::Json;
use saga_postgres::sqlx::{Column as _, Decode, Postgres, Row as _, Type, TypeInfo as _, ValueRef as _};
use serde_json::value::RawValue;

use super::time::Time;
use crate::cell::{Cell, RowError};
use crate::row::Row;

impl Row for PgRow {
    fn columns(&self) -> usize {
        self.len()
    }

    fn name(&self, column: usize) -> &str {
        self.column(column).name()
    }

    fn cell(&self, column: usize) -> Result<Cell<'_>, RowError> {
        let value = self.try_get_raw(column).map_err(|error| RowError(error.to_string()))?;
        if value.is_null() {
            return Ok(Cell::Null);
        }
        match self.column(column).type_info().name() {
            "INT2" => get::<i16>(self, column).map(|number| Cell::Integer(number.into())),
            "INT4" => get::<i32>(self, column).map(|number| Cell::Integer(number.into())),
            "INT8" => get(self, column).map(Cell::Integer),
            "FLOAT4" => get::<f32>(self, column).map(|number| Cell::Real(number.into())),
            "FLOAT8" => get(self, column).map(Cell::Real),
            "BOOL" => get(self, column).map(Cell::Bool),
            "TEXT" | "VARCHAR" | "CHAR" | "NAME" => get(self, column).map(|text| Cell::Text(Cow::Borrowed(text))),
            "BYTEA" => get(self, column).map(|bytes| Cell::Blob(Cow::Borrowed(bytes))),
            "TIMESTAMPTZ" => get(self, column).map(|Time(time)| Cell::Text(Cow::Owned(time.to_string()))),
            "JSON" | "JSONB" => {
                get::<Json<&RawValue>>(self, column).map(|json| Cell::Text(Cow::Borrowed(json.0.get())))
            }
            foreign => Ok(Cell::Foreign(foreign.to_owned())),
        }
    }
}

fn get<'r, T: Decode<'r, Postgres> + Type<Postgres>>(row: &'r PgRow, column: usize) -> Result<T, RowError> {
    row.try_get(column).map_err(|error| RowError(error.to_string()))
}
