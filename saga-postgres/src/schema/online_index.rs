//! Builds indexes over large tables while other processes write to them.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::options::PostgresOptions;
use crate::schema::migrations::{Index, LOCK_CLASS, READ_COMMITTED};

/// The time after which a process that waits for its turn looks again. A session that waited for a lock would hold a
/// snapshot, and the index would wait for that.
const LOOKS_EVERY: Duration = Duration::from_millis(500);

/// The turn of this process to migrate the schema, until it is dropped. It is a lock of a transaction on a connection of
/// its own, which ends with the process, also behind a pooler.
pub(crate) struct Turn(PgConnection);

impl Turn {
    /// Waits until no other process migrates the schema, however long that takes.
    pub(crate) async fn take(options: &PostgresOptions) -> Result<Self, sqlx::Error> {
        let mut conn = PgConnection::connect_with(&options.connection()).await?;
        for looks in 1.. {
            conn.execute(READ_COMMITTED).await?;
            let is_taken: bool = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1, hashtext($2))")
                .bind(LOCK_CLASS)
                .bind(&options.schema)
                .persistent(false)
                .fetch_one(&mut conn)
                .await?;
            if is_taken {
                break;
            }
            conn.execute("ROLLBACK").await?;
            if looks == 1 {
                tracing::info!(schema = options.schema, "migration waits for that of another process");
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
        // It has nothing to do while an index is built.
        conn.execute("SET LOCAL idle_in_transaction_session_timeout = 0").await?;
        Ok(Self(conn))
    }

    pub(crate) async fn end(self) -> Result<(), sqlx::Error> {
        self.0.close().await
    }
}

/// Builds the indexes that are not there. An index that a process left half built is made again.
pub(crate) async fn build(indexes: &[Index], options: &PostgresOptions) -> Result<(), sqlx::Error> {
    // Its settings are for this alone. A pooler would pass them on to others.
    let mut conn = PgConnection::connect_with(&options.connection()).await?;
    if !options.pgbouncer {
        // Others can write while it waits. A process that ends is noticed by the server, which then gives up the index.
        conn.execute("SET lock_timeout = 0").await?;
        conn.execute("SET statement_timeout = 0").await?;
        _ = conn.execute("SET client_connection_check_interval = 1000").await;
    }
    for index in indexes {
        build_one(&mut conn, index, options).await?;
    }
    conn.close().await
}

async fn build_one(conn: &mut PgConnection, index: &Index, options: &PostgresOptions) -> Result<(), sqlx::Error> {
    loop {
        match state(conn, index, options).await? {
            None => break,
            Some(State { is_valid: true, .. }) => return Ok(()),
            // The server has not noticed yet that the process which was building it has ended.
            Some(State { is_built: true, .. }) => tokio::time::sleep(LOOKS_EVERY).await,
            Some(_) => {
                let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS {{schema}}.{}", index.name);
                conn.execute(sqlx::raw_sql(AssertSqlSafe(options.render(drop)))).await?;
            }
        }
    }
    tracing::info!(schema = options.schema, index = index.name, "index is being built");
    conn.execute(sqlx::raw_sql(AssertSqlSafe(options.render(index.create("CONCURRENTLY"))))).await?;
    Ok(())
}

/// What there is of an index.
struct State {
    is_valid: bool,
    /// Whether a session is building it.
    is_built: bool,
}

async fn state(
    conn: &mut PgConnection,
    index: &Index,
    options: &PostgresOptions,
) -> Result<Option<State>, sqlx::Error> {
    let sql = "SELECT i.indisvalid AND i.indisready, \
             EXISTS (SELECT 1 FROM pg_stat_progress_create_index b WHERE b.index_relid = c.oid) \
         FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2";
    let query = sqlx::query_as(sql).bind(&options.schema).bind(index.name).persistent(false);
    let found: Option<(bool, bool)> = query.fetch_optional(conn).await?;
    Ok(found.map(|(is_valid, is_built)| State { is_valid, is_built }))
}
