use anyhow::Context;

use super::ShopConn;

/// What the shop's own steps and their compensations did so far, counted in its tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
    pub async fn of(shop: &mut impl ShopConn) -> anyhow::Result<Self> {
        let counted = shop
            .rows(
                "SELECT (SELECT count(*) FROM orders),
                        (SELECT count(DISTINCT order_id) FROM reservations),
                        (SELECT count(*) FROM orders WHERE status = 'confirmed'),
                        (SELECT count(DISTINCT order_id) FROM reservations WHERE status = 'released'),
                        (SELECT count(*) FROM orders WHERE status = 'cancelled')",
            )
            .await?;
        let row = counted.first().context("the tables of the shop count nothing")?;
        Ok(Self {
            placed: row.number(0)?,
            reserved: row.number(1)?,
            confirmed: row.number(2)?,
            released: row.number(3)?,
            cancelled: row.number(4)?,
        })
    }
}
