use std::error::Error;

use anyhow::bail;

/// A connection to the database that the shop's tables are in, whichever it is. All statements of the shop are written
/// once, for all of them; a value stands in them as `$1`, `$2` and so on.
pub trait ShopConn: Send + 'static {
    /// What the database says when it refuses.
    type Error: Error + Send + Sync + 'static;

    /// The statements that make the shop's tables.
    const TABLES: &'static str;
    /// Begins a transaction beside which no other one changes the tables.
    const BEGIN_ALONE: &'static str;

    /// Runs one statement, and says how many rows it changed.
    fn execute(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Runs one query, and gives all of its rows.
    fn rows(&mut self, sql: &'static str) -> impl Future<Output = Result<Vec<Row>, Self::Error>> + Send;

    /// Runs statements that have no values, one after the other.
    fn script(&mut self, sql: &'static str) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A value that goes into a statement.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// A number.
    Number(i64),
    /// Text.
    Text(&'a str),
}

impl From<&i64> for Value<'_> {
    fn from(number: &i64) -> Self {
        Self::Number(*number)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&&'a str> for Value<'a> {
    fn from(text: &&'a str) -> Self {
        Self::Text(text)
    }
}

/// The values of a statement, in the order of their numbers.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::shop::Value::from(&$value)),*] };
}
pub(crate) use values;

/// A row that a query gave.
#[derive(Debug)]
pub struct Row(pub(super) Vec<Cell>);

/// What stands in one column of a row.
#[derive(Debug)]
pub(super) enum Cell {
    Number(i64),
    Text(String),
}

impl Row {
    /// The number in a column, counted from 0.
    pub fn number(&self, column: usize) -> anyhow::Result<i64> {
        match self.0.get(column) {
            Some(Cell::Number(number)) => Ok(*number),
            _ => bail!("there is no number in column {column} of a table"),
        }
    }

    /// The text in a column, counted from 0.
    pub fn text(&self, column: usize) -> anyhow::Result<String> {
        match self.0.get(column) {
            Some(Cell::Text(text)) => Ok(text.clone()),
            _ => bail!("there is no text in column {column} of a table"),
        }
    }
}
