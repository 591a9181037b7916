//! The first statement of a connection that keeps prepared statements.

use sqlx::{Executor as _, PgConnection, SqlStr};

/// Prepares a statement on a new connection. A connection does not say whether it may keep statements, so `saga_sql` prepares its own
/// only on one that has kept another. Without this, a store that only runs transactions of the application would have the server
/// plan each of their statements anew.
pub(crate) async fn prepare_first_statement(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    conn.prepare(SqlStr::from_static("SELECT 1")).await.map(drop)
}
