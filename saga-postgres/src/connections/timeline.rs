//! The timeline of the server's log. A failover begins a new one. If the standby lagged behind, the last commits are
//! gone, although this process may remember them.

use sqlx::{Executor as _, PgConnection, Row as _};

use crate::rows::definition_numbers::DefinitionNumbers;

/// The number of the timeline, on a server that is not a standby.
pub(crate) const TIMELINE: &str = "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint";

/// Notes the timeline of a new connection. A failover breaks all open connections, so every connection after it passes
/// here first.
pub(crate) async fn note_timeline(conn: &mut PgConnection, definitions: &DefinitionNumbers) -> Result<(), sqlx::Error> {
    let sql = format!("SELECT CASE WHEN NOT pg_is_in_recovery() THEN {TIMELINE} END");
    // By one message: behind a pooler a prepared statement may run in another session, which refuses it.
    let row = conn.fetch_one(sqlx::raw_sql(sqlx::AssertSqlSafe(sql))).await?;
    let timeline: Option<i64> = row.try_get(0)?;
    if let Some(timeline) = timeline {
        definitions.on_timeline(timeline);
    }
    Ok(())
}
