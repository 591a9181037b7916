//! The timeline of the server's log. A failover begins another one, and if the standby lagged behind, what was committed last
//! is gone, though this process may remember it.

use std::sync::Arc;

use sqlx::PgConnection;

use crate::definitions::Definitions;

/// The number of the timeline, for a server that is none of the standbys.
pub(crate) const TIMELINE: &str = "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint";

/// Looks at a connection that was just opened: all that were open break with a failover, so that every one behind it passes
/// here first.
pub(crate) async fn look(conn: &mut PgConnection, definitions: &Arc<Definitions>) -> Result<(), sqlx::Error> {
    let sql = format!("SELECT CASE WHEN NOT pg_is_in_recovery() THEN {TIMELINE} END");
    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).persistent(false);
    let timeline: Option<i64> = query.fetch_one(conn).await?;
    if let Some(timeline) = timeline {
        definitions.on_timeline(timeline);
    }
    Ok(())
}
