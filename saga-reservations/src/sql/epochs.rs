//! The epochs of the holds in Redis.
//!
//! A hold in Redis is confirmed only in the epoch in which Redis had it. The row of the epoch is locked until the transaction
//! has ended, so no confirmation of an epoch is committed after the next one has begun.

use saga_sql::{Dialect, SqlConn};

#[cfg(feature = "postgres")]
use super::task::Task;
use super::work::{Work, WorkError};

/// The low bits of a token in Redis count within an epoch.
const COUNTER_SIZE: i64 = 1 << 32;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS reservation_epochs (id INTEGER PRIMARY KEY, epoch BIGINT NOT NULL)";
/// Two transactions that create a table at once may fail, so they take turns.
const CREATE_IN_TURN: &str = "SELECT pg_advisory_xact_lock(7305794381162346);
    CREATE TABLE IF NOT EXISTS reservation_epochs (id INTEGER PRIMARY KEY, epoch BIGINT NOT NULL)";
const CURRENT: &str = "SELECT epoch FROM reservation_epochs WHERE id = 0";
const RAISE: &str = "INSERT INTO reservation_epochs AS known (id, epoch) VALUES (0, $1) \
     ON CONFLICT (id) DO UPDATE SET epoch = CASE WHEN known.epoch < $1 THEN $1 ELSE known.epoch + 1 END RETURNING epoch";
const HIGHEST_TOKEN: &str = "SELECT coalesce(max(last_token), 0) FROM reservation_resources";

/// Makes the table of the epoch.
pub(super) struct CreateEpochs;

/// Reads the epoch that was begun last, or 0.
pub(super) struct CurrentEpoch;

/// Begins an epoch above this one, above all before, and above the tokens that were given out without Redis.
pub(super) struct RaiseEpoch {
    pub(super) above: u64,
}

impl Work for CreateEpochs {
    type Answer = ();

    const OPERATION: &'static str = "create the table of epochs";

    async fn run<C: SqlConn>(&self, conn: &mut C, _clock_shift: i64) -> Result<(), WorkError> {
        let sql = if C::DIALECT == Dialect::Sqlite { CREATE } else { CREATE_IN_TURN };
        Ok(conn.execute_batch(sql).await?)
    }
}

impl Work for CurrentEpoch {
    type Answer = u64;

    const OPERATION: &'static str = "read the epoch of the holds in Redis";

    async fn run<C: SqlConn>(&self, conn: &mut C, _clock_shift: i64) -> Result<u64, WorkError> {
        let epoch: Option<u64> = conn.query_opt(CURRENT, &[]).await?;
        Ok(epoch.unwrap_or_default())
    }
}

impl Work for RaiseEpoch {
    type Answer = u64;

    const OPERATION: &'static str = "begin an epoch of the holds in Redis";

    async fn run<C: SqlConn>(&self, conn: &mut C, _clock_shift: i64) -> Result<u64, WorkError> {
        let highest: i64 = conn.query_one(HIGHEST_TOKEN, &[]).await?;
        let least = (highest / COUNTER_SIZE).max(i64::try_from(self.above).unwrap_or(i64::MAX - 1)) + 1;
        Ok(conn.query_one(RAISE, &[&least]).await?)
    }
}

/// The epoch, which stays so until the transaction has ended.
pub(super) async fn current_until_commit<C: SqlConn>(conn: &mut C) -> Result<u64, WorkError> {
    const SHARED: &str = "SELECT epoch FROM reservation_epochs WHERE id = 0 FOR SHARE";
    // A transaction on SQLite is the only one that writes.
    let sql = if C::DIALECT == Dialect::Sqlite { CURRENT } else { SHARED };
    let epoch: Option<u64> = conn.query_opt(sql, &[]).await?;
    Ok(epoch.unwrap_or_default())
}

/// As [`current_until_commit`], if one of the tasks needs it, and otherwise 0.
#[cfg(feature = "postgres")]
pub(super) async fn of_tasks<C: SqlConn>(conn: &mut C, tasks: &[Task]) -> Result<u64, WorkError> {
    if tasks.iter().all(|task| task.epoch().is_none()) {
        return Ok(0);
    }
    current_until_commit(conn).await
}
