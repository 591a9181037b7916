use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{Column as _, PgConnection, Row as _, TypeInfo as _, postgres::PgRow};

use super::{
    ShopConn, Value,
    conn::{Cell, Row},
};

/// Whether a database of this program is reached through a pooler that gives each transaction another session. A
/// connection does not say so, and a statement that is prepared in one of them is not there in the next.
static POOLED: AtomicBool = AtomicBool::new(false);

/// From now on no statement is prepared for later use.
pub(crate) fn is_behind_pooler() {
    POOLED.store(true, Ordering::Relaxed);
}

fn prepares() -> bool {
    !POOLED.load(Ordering::Relaxed)
}

impl ShopConn for PgConnection {
    type Error = sqlx::Error;

    const TABLES: &'static str = include_str!("postgres.sql");
    // The number is this program's own: processes that start at once take turns.
    const BEGIN_ALONE: &'static str = "BEGIN; SELECT pg_advisory_xact_lock(7310230)";

    async fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> sqlx::Result<u64> {
        let query = values.iter().fold(sqlx::query(sql).persistent(prepares()), |query, value| match *value {
            Value::Number(number) => query.bind(number),
            Value::Text(text) => query.bind(text.to_owned()),
        });
        Ok(query.execute(self).await?.rows_affected())
    }

    async fn rows(&mut self, sql: &'static str) -> sqlx::Result<Vec<Row>> {
        sqlx::query(sql).persistent(prepares()).fetch_all(self).await?.iter().map(row).collect()
    }

    async fn script(&mut self, sql: &'static str) -> sqlx::Result<()> {
        sqlx::Executor::execute(&mut *self, sqlx::raw_sql(sql)).await?;
        Ok(())
    }
}

fn row(row: &PgRow) -> sqlx::Result<Row> {
    let cell = |column: &sqlx::postgres::PgColumn| match column.type_info().name() {
        "INT8" => row.try_get(column.ordinal()).map(Cell::Number),
        _ => row.try_get(column.ordinal()).map(Cell::Text),
    };
    row.columns().iter().map(cell).collect::<sqlx::Result<_>>().map(Row)
}
