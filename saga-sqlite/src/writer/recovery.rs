//! Takes over the file from an earlier process.
//!
//! The leases of that process need no write: it is dead, since this process holds the lock, so none of its members is
//! alive.

use std::ops::Range;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use saga_core::store::{MemberId, Timestamp};

use crate::{clock, ids};

/// Smaller corrections of a clock are not reported.
const CLOCK_BEHIND_MIN: Duration = Duration::from_mins(1);

/// Reserves a block of ids that no process was given.
pub(crate) fn reserve_ids(conn: &mut Connection) -> rusqlite::Result<Range<i64>> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let block = ids::fetch(&tx)?;
    tx.commit()?;
    Ok(block)
}

/// How far `now` is behind the newest entry of an earlier process, if farther than clocks are usually corrected.
pub(crate) fn clock_behind(conn: &Connection, now: Timestamp) -> rusqlite::Result<Option<Duration>> {
    // Ids grow with time, so the last rows are nearly the newest.
    let sql = "SELECT max(coalesce((SELECT started_at FROM saga_sagas ORDER BY id DESC LIMIT 1), 0),
                          coalesce((SELECT at FROM saga_history ORDER BY id DESC LIMIT 1), 0),
                          coalesce((SELECT max(received_at) FROM saga_received), 0))";
    let newest: i64 = conn.query_row(sql, (), |row| row.get(0))?;
    Ok(Some(clock::elapsed_between(now, Timestamp(newest))).filter(|behind| *behind > CLOCK_BEHIND_MIN))
}

/// The owners of leases on work rows, dead or alive.
pub(crate) fn owners(conn: &Connection) -> rusqlite::Result<Vec<MemberId>> {
    let sql = "SELECT DISTINCT owner FROM saga_work WHERE owner IS NOT NULL";
    conn.prepare(sql)?.query_map((), |row| row.get(0).map(MemberId))?.collect()
}
