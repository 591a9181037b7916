//! Detects a pooler in front of the server that gives each transaction another session.

use saga_core::store::{StoreError, StoreErrorKind};
use sqlx::{Connection as _, Executor as _, PgConnection, Row as _};

use crate::options::PostgresOptions;

/// How often two connections are asked for their sessions. An idle pooler is detected the first time; in a busy one
/// each answer may come from another session.
const ROUNDS: usize = 4;

/// Refuses a pooler in transaction mode, unless the options allow it: a statement that is prepared in one transaction
/// does not exist in the next, which looks like a lost answer.
///
/// The proof is two connections with one session, or one connection with several. Where a second connection is not
/// available, nothing is detected.
pub(crate) async fn refuse_unknown_pooler(
    conn: &mut PgConnection,
    options: &PostgresOptions,
) -> Result<(), StoreError> {
    if options.pgbouncer {
        return Ok(());
    }
    let connection = options.connection();
    let second = tokio::time::timeout(options.acquire_timeout, PgConnection::connect_with(&connection)).await;
    let Ok(Ok(mut second)) = second else { return Ok(()) };
    let shares = shares_sessions(conn, &mut second).await;
    // An error of the close does not matter.
    let _ = second.close().await;
    // An error here occurs again where the connection is needed, and is reported there.
    if !shares.unwrap_or(false) {
        return Ok(());
    }
    let detail = format!(
        "database {:?} of {}:{} is reached through a pooler that gives each transaction another session (such as PgBouncer in \
         transaction mode); say so with `PostgresOptions::pgbouncer`, set the pooler to `pool_mode = session`, or name the \
         server itself",
        options.connect.get_database().unwrap_or_else(|| options.connect.get_username()),
        options.connect.get_host(),
        options.connect.get_port(),
    );
    Err(StoreError::new(StoreErrorKind::Misuse, "open", detail))
}

async fn shares_sessions(first: &mut PgConnection, second: &mut PgConnection) -> sqlx::Result<bool> {
    let sessions = (session(first).await?, session(second).await?);
    if sessions.0 == sessions.1 {
        return Ok(true);
    }
    for _ in 1..ROUNDS {
        if (session(first).await?, session(second).await?) != sessions {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The process id of the server's session. The statement is sent without being prepared.
async fn session(conn: &mut PgConnection) -> sqlx::Result<i32> {
    conn.fetch_one(sqlx::raw_sql("SELECT pg_backend_pid()")).await?.try_get(0)
}
