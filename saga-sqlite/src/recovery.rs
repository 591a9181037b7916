//! What an earlier process left behind.

use std::ops::Range;

use rusqlite::{Connection, TransactionBehavior};
use saga_core::store::MemberId;

use crate::ids;

/// Takes the file over from an earlier process, which is dead, since this one holds the lock: what it had leased is
/// free. Answers a block of ids that nobody ever got.
pub(crate) fn take_over(conn: &mut Connection) -> rusqlite::Result<Range<i64>> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute("UPDATE saga_work SET owner = NULL, leased_until = NULL, suspect = 1 WHERE owner IS NOT NULL", ())?;
    tx.execute("UPDATE saga_lanes SET owner = NULL, leased_until = NULL WHERE owner IS NOT NULL", ())?;
    let block = ids::fetch(&tx)?;
    tx.commit()?;
    Ok(block)
}

/// Who holds leases.
pub(crate) fn owners(conn: &Connection) -> rusqlite::Result<Vec<MemberId>> {
    let sql = "SELECT owner FROM saga_work WHERE owner IS NOT NULL
        UNION SELECT owner FROM saga_lanes WHERE owner IS NOT NULL";
    conn.prepare(sql)?.query_map((), |row| row.get(0).map(MemberId))?.collect()
}
