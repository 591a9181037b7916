//! The pool of connections.

use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, Executor as _, PgConnection};

/// A connection that was idle longer is tested before it is used.
pub(crate) const IDLE_UNCHECKED_MAX: Duration = Duration::from_secs(1);

/// Options for a pool that only this store uses: the store closes connections that may be inside a transaction.
pub(crate) fn own_pool_options() -> PgPoolOptions {
    PgPoolOptions::new().test_before_acquire(false).before_acquire(|conn, known| {
        let is_trusted = known.idle_for < IDLE_UNCHECKED_MAX;
        Box::pin(async move {
            if !is_trusted {
                conn.ping().await?;
            }
            Ok(true)
        })
    })
}

/// Ends a transaction that is still open. Without one, the server logs no warning.
pub(crate) async fn end_stale_transaction(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    if conn.execute("BEGIN; ROLLBACK").await.is_err() {
        // A failed transaction accepts only its end.
        conn.execute("ROLLBACK").await?;
    }
    Ok(true)
}
