//! The work that every contender does, and the count of what it left behind.

use anyhow::{Result, ensure};
use rusqlite::Connection;
use saga_sql::{SqlConn, SqlError};

/// One step of the saga.
#[derive(Debug)]
pub(crate) struct Step {
    /// Its place in the saga, from 0.
    pub(crate) position: u32,
    pub(crate) name: &'static str,
    table: &'static str,
    insert: &'static str,
    /// The same with the parameters of `SqlConn`.
    portable: &'static str,
}

/// The steps of the saga, in order: each writes one row to a table of its own.
pub(crate) const STEPS: [Step; 3] = [
    Step {
        position: 0,
        name: "reserve-stock",
        table: "reservations",
        insert: "INSERT INTO reservations (id, order_id, amount) VALUES (?1, ?2, ?3)",
        portable: "INSERT INTO reservations (id, order_id, amount) VALUES ($1, $2, $3)",
    },
    Step {
        position: 1,
        name: "charge-card",
        table: "payments",
        insert: "INSERT INTO payments (id, order_id, amount) VALUES (?1, ?2, ?3)",
        portable: "INSERT INTO payments (id, order_id, amount) VALUES ($1, $2, $3)",
    },
    Step {
        position: 2,
        name: "confirm-order",
        table: "confirmations",
        insert: "INSERT INTO confirmations (id, order_id, amount) VALUES (?1, ?2, ?3)",
        portable: "INSERT INTO confirmations (id, order_id, amount) VALUES ($1, $2, $3)",
    },
];

/// The steps of one saga.
pub(crate) const STEPS_PER_SAGA: u32 = 3;

/// The tables of the business: one a step.
pub(crate) const BUSINESS_SCHEMA: &str = "
    CREATE TABLE reservations (id BLOB PRIMARY KEY, order_id INTEGER NOT NULL, amount INTEGER NOT NULL);
    CREATE TABLE payments (id BLOB PRIMARY KEY, order_id INTEGER NOT NULL, amount INTEGER NOT NULL);
    CREATE TABLE confirmations (id BLOB PRIMARY KEY, order_id INTEGER NOT NULL, amount INTEGER NOT NULL);
";

impl Step {
    /// Does the business part of the step: its one write.
    pub(crate) fn write_business_row(&self, conn: &Connection, order: u32) -> rusqlite::Result<()> {
        let row = (self.row_id(order), order, amount(order));
        conn.prepare_cached(self.insert)?.execute(row)?;
        Ok(())
    }

    /// The same on whatever database the connection is.
    pub(crate) async fn write_business_row_by_sql(&self, conn: &mut impl SqlConn, order: u32) -> Result<(), SqlError> {
        conn.execute(self.portable, &[&&self.row_id(order)[..], &order, &amount(order)]).await?;
        Ok(())
    }

    /// A row's key: sixteen bytes without an order among them, as a random UUID is.
    fn row_id(&self, order: u32) -> [u8; 16] {
        let seed = u64::from(order) << 8 | u64::from(self.position);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&mixed(seed).to_be_bytes());
        id[8..].copy_from_slice(&mixed(!seed).to_be_bytes());
        id
    }
}

/// Counts what a run left: every step of every saga exactly once.
pub(crate) fn assert_business_rows(conn: &Connection, sagas: u32) -> Result<()> {
    for Step { name, table, .. } in &STEPS {
        let count = |what: &str| -> rusqlite::Result<u32> {
            conn.query_row(&format!("SELECT count({what}) FROM {table}"), (), |row| row.get(0))
        };
        let (rows, orders) = (count("*")?, count("DISTINCT order_id")?);
        ensure!(
            rows == sagas && orders == sagas,
            "{name} wrote {rows} rows for {orders} orders, and {sagas} sagas ran"
        );
    }
    Ok(())
}

/// An order's amount, in cents.
pub(crate) fn amount(order: u32) -> u32 {
    100 + order % 10_000
}

/// The finaliser of splitmix64: a bijection, so no two rows get one key.
fn mixed(seed: u64) -> u64 {
    let mut value = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
