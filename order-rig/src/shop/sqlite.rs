use rusqlite::{CachedStatement, Connection, types::ValueRef};

use super::{
    ShopConn, Value,
    conn::{Cell, Row},
};

impl ShopConn for Connection {
    type Error = rusqlite::Error;

    const TABLES: &'static str = include_str!("sqlite.sql");
    const BEGIN_ALONE: &'static str = "BEGIN IMMEDIATE";

    async fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> rusqlite::Result<u64> {
        let mut statement = self.prepare_cached(sql)?;
        for (number, value) in (1..).zip(values) {
            bind(&mut statement, number, *value)?;
        }
        Ok(statement.raw_execute()? as u64)
    }

    async fn rows(&mut self, sql: &'static str) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.prepare_cached(sql)?;
        let columns = statement.column_count();
        let read = |row: &rusqlite::Row<'_>| (0..columns).map(|column| cell(row, column)).collect::<Result<_, _>>();
        statement.query_map([], |row| read(row).map(Row))?.collect()
    }

    async fn script(&mut self, sql: &'static str) -> rusqlite::Result<()> {
        self.execute_batch(sql)
    }
}

fn bind(statement: &mut CachedStatement<'_>, number: usize, value: Value<'_>) -> rusqlite::Result<()> {
    // To SQLite `$2` is a name, and its place is where it stands first.
    let name = format!("${number}");
    let place = statement.parameter_index(&name)?.ok_or(rusqlite::Error::InvalidParameterName(name))?;
    match value {
        Value::Number(number) => statement.raw_bind_parameter(place, number),
        Value::Text(text) => statement.raw_bind_parameter(place, text),
    }
}

fn cell(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Cell> {
    match row.get_ref(column)? {
        ValueRef::Integer(number) => Ok(Cell::Number(number)),
        _ => Ok(Cell::Text(row.get(column)?)),
    }
}
