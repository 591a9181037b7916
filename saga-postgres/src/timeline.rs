//! The timeline of the server's log. A failover begins another one, and if the standby lagged behind, what was committed last
//! is gone, though this process may remember it.

use sqlx::{Executor as _, PgConnection, Row as _};

use crate::definition_numbers::DefinitionNumbers;

/// The number of the timeline, for a server that is none of the standbys.
pub(crate) const TIMELINE: &str = "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint";

/// Looks at a connection that was just opened: all that were open break with a failover, so that every one behind it passes
/// here first.
pub(crate) async fn note_timeline(conn: &mut PgConnection, definitions: &DefinitionNumbers) -> Result<(), sqlx::Error> {
    let sql = format!("SELECT CASE WHEN NOT pg_is_in_recovery() THEN {TIMELINE} END");
    // In one message: behind a pooler, a statement that is prepared first may be run in another session, which refuses it.
    let row = conn.fetch_one(sqlx::raw_sql(sqlx::AssertSqlSafe(sql))).await?;
    let timeline: Option<i64> = row.try_get(0)?;
    if let Some(timeline) = timeline {
        definitions.on_timeline(timeline);
    }
    Ok(())
}
