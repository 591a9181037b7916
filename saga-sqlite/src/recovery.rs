//! What an earlier process left behind.
//!
//! Its leases need no write: it is dead, since this process holds the lock, so that none of its members lives.

use std::ops::Range;

use rusqlite::{Connection, TransactionBehavior};
use saga_core::store::MemberId;

use crate::ids;

/// Takes the file over from an earlier process: answers a block of ids that nobody ever got.
pub(crate) fn take_over(conn: &mut Connection) -> rusqlite::Result<Range<i64>> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let block = ids::fetch(&tx)?;
    tx.commit()?;
    Ok(block)
}

/// Who holds a lease on a work row, dead or alive.
pub(crate) fn owners(conn: &Connection) -> rusqlite::Result<Vec<MemberId>> {
    let sql = "SELECT DISTINCT owner FROM saga_work WHERE owner IS NOT NULL";
    conn.prepare(sql)?.query_map((), |row| row.get(0).map(MemberId))?.collect()
}
