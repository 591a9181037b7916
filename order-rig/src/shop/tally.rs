use saga_sql::SqlConn;
use serde::Deserialize;

/// What the shop's own steps and their compensations did so far, counted in its tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Tally {
    /// Orders that were placed.
    pub placed: i64,
    /// Orders that stock was reserved for.
    pub reserved: i64,
    /// Orders that were confirmed.
    pub confirmed: i64,
    /// Orders whose stock was given back.
    pub released: i64,
    /// Orders that were cancelled.
    pub cancelled: i64,
}

impl Tally {
    /// Counts.
    pub async fn of(shop: &mut impl SqlConn) -> anyhow::Result<Self> {
        let counts = "SELECT (SELECT count(*) FROM orders) AS placed,
                             (SELECT count(DISTINCT order_id) FROM reservations) AS reserved,
                             (SELECT count(*) FROM orders WHERE status = 'confirmed') AS confirmed,
                             (SELECT count(DISTINCT order_id) FROM reservations WHERE status = 'released') AS released,
                             (SELECT count(*) FROM orders WHERE status = 'cancelled') AS cancelled";
        Ok(shop.query_one(counts, &[]).await?)
    }
}
