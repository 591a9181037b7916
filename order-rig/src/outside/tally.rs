use rusqlite::Connection;
use serde::{Deserialize, Serialize};

/// What the services outside did so far, counted in their book.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Cards that were charged.
    pub charged: i64,
    /// Keys that were refunded, or barred before anything was charged.
    pub refunded: i64,
    /// Shipments that were booked.
    pub booked: i64,
    /// Keys whose shipment was cancelled, or barred before anything was booked.
    pub cancelled: i64,
    /// Calls that came in.
    pub calls: i64,
    /// Calls that came in under a key that had been called before.
    pub repeated: i64,
    /// Calls that were answered from the book, because their work was done before.
    pub replayed: i64,
}

impl Tally {
    pub(super) fn of(book: &Connection) -> rusqlite::Result<Self> {
        let count = |sql: &str| book.query_row(sql, [], |row| row.get::<_, i64>(0));
        Ok(Self {
            charged: count("SELECT count(*) FROM charges")?,
            refunded: count("SELECT count(DISTINCT charge_key) FROM refunds")?,
            booked: count("SELECT count(*) FROM shipments")?,
            cancelled: count("SELECT count(DISTINCT shipment_key) FROM cancellations")?,
            calls: count("SELECT coalesce(sum(calls), 0) FROM calls")?,
            repeated: count("SELECT coalesce(sum(calls - 1), 0) FROM calls")?,
            replayed: count("SELECT coalesce(sum(replays), 0) FROM answers")?,
        })
    }
}
