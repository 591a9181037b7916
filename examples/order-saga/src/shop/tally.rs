use rusqlite::Connection;

/// What the shop's own steps and their compensations did so far, counted in its tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Orders that were placed.
    pub placed: u32,
    /// Orders that stock was reserved for.
    pub reserved: u32,
    /// Orders that were confirmed.
    pub confirmed: u32,
    /// Orders whose stock was given back.
    pub released: u32,
    /// Orders that were cancelled.
    pub cancelled: u32,
}

impl Tally {
    /// Counts.
    ///
    /// # Errors
    ///
    /// When the tables cannot be read.
    pub fn of(shop: &Connection) -> rusqlite::Result<Self> {
        let count = |sql: &str| shop.query_row(sql, [], |row| row.get::<_, u32>(0));
        Ok(Self {
            placed: count("SELECT count(*) FROM orders")?,
            reserved: count("SELECT count(DISTINCT order_id) FROM reservations")?,
            confirmed: count("SELECT count(*) FROM orders WHERE status = 'confirmed'")?,
            released: count("SELECT count(DISTINCT order_id) FROM reservations WHERE status = 'released'")?,
            cancelled: count("SELECT count(*) FROM orders WHERE status = 'cancelled'")?,
        })
    }
}
