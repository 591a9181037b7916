use std::borrow::Cow;
use std::time::SystemTime;

use serde_json::value::RawValue;

/// A parameter of a statement, as a database takes it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SqlValue<'a> {
    /// `NULL`, of a column of this type: PostgreSQL asks for the types of all parameters.
    Null(SqlType),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes.
    Blob(Cow<'a, [u8]>),
    /// True or false: SQLite stores 1 or 0.
    Bool(bool),
    /// A time: SQLite stores its text as RFC 3339 has it, in UTC with microseconds, which sorts as the times do.
    Time(SystemTime),
    /// JSON: SQLite stores its text.
    Json(Box<RawValue>),
}

/// The types of values that both databases have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SqlType {
    /// `BIGINT`
    Integer,
    /// `DOUBLE PRECISION`
    Real,
    /// `TEXT`
    Text,
    /// PostgreSQL's `BYTEA`, SQLite's `BLOB`
    Blob,
    /// `BOOLEAN`
    Bool,
    /// PostgreSQL's `TIMESTAMPTZ`, SQLite's `TEXT`
    Time,
    /// PostgreSQL's `JSONB`, SQLite's `TEXT`
    Json,
}
