//! Fills the runtime's tables with sagas that have ended: one is run, and its rows are copied.

use anyhow::{Context as _, Result, ensure};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _};

use super::saga;
use super::work::Work;

/// The tables that a finished saga of W leaves rows in, with the columns that differ between sagas.
const TABLES: [(&str, &[(&str, &str)]); 3] = [
    ("sagas", &[("id", "$first + n"), ("key", "'order-' || n")]),
    ("progress", &[("id", "$first + n")]),
    ("records", &[("key", "'order-' || n"), ("saga", "$first + n")]),
];

/// An index or a constraint with one, which is made again when the rows are there.
struct Index {
    drop: String,
    create: String,
}

/// Fills an empty database, so that there are so many finished sagas: the orders from 0 on.
pub(super) async fn fill(url: &str, finished: u32) -> Result<()> {
    saga::run(url, Work::Finished, 0..1, 1).await?;
    let mut conn = PgConnection::connect(url).await?;
    let first = reserve_ids(&mut conn, finished).await?;
    let mut filling = Vec::new();
    for (table, changed) in TABLES {
        filling.push(tokio::spawn(fill_table(url.to_owned(), table, changed, first, finished)));
    }
    for table in filling {
        table.await??;
    }
    let sql = "SELECT (SELECT count(*) FROM saga.sagas), (SELECT count(*) FROM saga.progress WHERE ended_at IS NOT NULL), \
               (SELECT count(*) FROM saga.records)";
    let row = conn.fetch_one(sql).await?;
    let counted: (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let finished = i64::from(finished);
    ensure!(counted == (finished, finished, 3 * finished), "the tables were filled with {counted:?} rows");
    conn.execute("CHECKPOINT").await?;
    Ok(conn.close().await?)
}

/// Reserves unused ids, so that the rows that are copied have none that the runtime hands out later.
pub(super) async fn reserve_ids(conn: &mut PgConnection, count: u32) -> Result<i64> {
    let block: i64 = sqlx::query_scalar("SELECT seqincrement FROM pg_sequence WHERE seqrelid = 'saga.ids'::regclass")
        .fetch_one(&mut *conn)
        .await?;
    let first: i64 = sqlx::query_scalar("SELECT nextval('saga.ids')").fetch_one(&mut *conn).await?;
    for _ in 0..i64::from(count) / block {
        conn.execute("SELECT nextval('saga.ids')").await?;
    }
    Ok(first)
}

async fn fill_table(
    url: String,
    table: &'static str,
    changed: &'static [(&'static str, &'static str)],
    first: i64,
    count: u32,
) -> Result<()> {
    let mut conn = PgConnection::connect(&url).await?;
    conn.execute("SET synchronous_commit = off; SET maintenance_work_mem = '256MB'").await?;
    let indexes = indexes(&mut conn, table).await?;
    for index in &indexes {
        conn.execute(sqlx::raw_sql(AssertSqlSafe(index.drop.clone()))).await?;
    }
    let copy = copy_rows(&mut conn, table, changed, &format!("generate_series(1, {})", count - 1), first).await?;
    conn.execute(sqlx::raw_sql(AssertSqlSafe(copy))).await.with_context(|| format!("cannot fill {table}"))?;
    for index in &indexes {
        conn.execute(sqlx::raw_sql(AssertSqlSafe(index.create.clone()))).await?;
    }
    conn.execute(sqlx::raw_sql(AssertSqlSafe(format!("VACUUM ANALYZE saga.{table}")))).await?;
    Ok(conn.close().await?)
}

/// The statement that copies a table's rows, once for each `n` of `numbers`, with these columns changed.
pub(super) async fn copy_rows(
    conn: &mut PgConnection,
    table: &str,
    changed: &[(&str, &str)],
    numbers: &str,
    first: i64,
) -> Result<String> {
    let sql = "SELECT attname::text FROM pg_attribute WHERE attrelid = ('saga.' || $1)::regclass AND attnum > 0 \
               AND NOT attisdropped ORDER BY attnum";
    let columns: Vec<String> = sqlx::query_scalar(sql).bind(table).fetch_all(conn).await?;
    let value = |column: &String| {
        let changed = changed.iter().find(|(name, _)| name == column);
        changed.map_or_else(|| format!("t.{column}"), |(_, value)| value.replace("$first", &first.to_string()))
    };
    let values: Vec<String> = columns.iter().map(value).collect();
    Ok(format!("INSERT INTO saga.{table} SELECT {} FROM saga.{table} t, {numbers} n ORDER BY n", values.join(", ")))
}

async fn indexes(conn: &mut PgConnection, table: &str) -> Result<Vec<Index>> {
    let sql = "SELECT i.indexrelid::regclass::text, c.conname::text, pg_get_indexdef(i.indexrelid), \
               pg_get_constraintdef(c.oid) FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid \
               WHERE i.indrelid = ('saga.' || $1)::regclass";
    let rows = sqlx::query(sql).bind(table).fetch_all(conn).await?;
    let index = |row: &sqlx::postgres::PgRow| {
        let (name, constraint): (String, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
        let (index, definition): (String, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
        Ok(match constraint.zip(definition) {
            Some((constraint, definition)) => Index {
                drop: format!("ALTER TABLE saga.{table} DROP CONSTRAINT {constraint}"),
                create: format!("ALTER TABLE saga.{table} ADD CONSTRAINT {constraint} {definition}"),
            },
            None => Index { drop: format!("DROP INDEX {name}"), create: index },
        })
    };
    rows.iter().map(index).collect()
}
