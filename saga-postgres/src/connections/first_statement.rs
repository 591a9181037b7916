//! The first statements of a connection that keeps prepared statements, and so its session.

use sqlx::{Executor as _, PgConnection, SqlStr};

/// Sets what the store relies on, whatever a role or a database has as its default: in one snapshot, a statement that commits by
/// itself would not see what was committed while it waited for a lock. A pooler in front refuses such settings as parameters of a
/// connection.
pub(crate) async fn set_session(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    let set = "SET default_transaction_isolation = 'read committed'; SET bytea_output = 'hex'";
    conn.execute(sqlx::raw_sql(set)).await.map(drop)
}

/// Prepares a statement on a new connection. A connection does not say whether it may keep statements, so `saga_sql` prepares its own
/// only on one that has kept another. Without this, a store that only runs transactions of the application would have the server
/// plan each of their statements anew.
pub(crate) async fn prepare_first_statement(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    conn.prepare(SqlStr::from_static("SELECT 1")).await.map(drop)
}
