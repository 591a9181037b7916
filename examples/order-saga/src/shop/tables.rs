use rusqlite::{Connection, TransactionBehavior, params};

use crate::orders::{Catalogue, Product};

/// The shop's tables as this program knows them. A change of them is a new number and the statements that lead to it.
const VERSION: i64 = 1;

/// Why the shop's tables cannot be used.
#[derive(Debug)]
pub enum TablesError {
    /// A newer program made them.
    Newer(i64),
    /// The database said no.
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for TablesError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl std::fmt::Display for TablesError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Newer(version) => write!(
                f,
                "the shop's tables have version {version}, but this program only knows versions up to {VERSION}; run the newer program"
            ),
            Self::Database(error) => write!(f, "the shop's tables cannot be used: {error}"),
        }
    }
}

impl std::error::Error for TablesError {}

/// Makes the shop's tables unless they are there.
///
/// # Errors
///
/// When a newer program made them, or the database refuses.
pub fn migrate(conn: &mut Connection) -> Result<(), TablesError> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute_batch("CREATE TABLE IF NOT EXISTS shop_migrations (version INTEGER PRIMARY KEY) STRICT")?;
    let found: i64 = tx.query_row("SELECT coalesce(max(version), 0) FROM shop_migrations", [], |row| row.get(0))?;
    if found > VERSION {
        return Err(TablesError::Newer(found));
    }
    if found < 1 {
        tx.execute_batch(include_str!("tables.sql"))?;
        tx.execute("INSERT INTO shop_migrations (version) VALUES (1)", [])?;
    }
    Ok(tx.commit()?)
}

/// Puts the products on the shelves that the shop does not have yet. Those it has keep the stock that is left of them.
///
/// # Errors
///
/// When the database refuses.
pub fn load_products(conn: &mut Connection, products: &[Product]) -> rusqlite::Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for product in products {
        tx.execute(
            "INSERT INTO products (sku, name, unit_price_cents, in_stock, in_stock_at_first) VALUES (?1, ?2, ?3, ?4, ?4)
             ON CONFLICT (sku) DO NOTHING",
            params![product.sku, product.name, product.unit_price_cents, product.in_stock],
        )?;
    }
    tx.commit()
}

/// The products that the shop has.
///
/// # Errors
///
/// When the database refuses.
pub fn catalogue(conn: &Connection) -> rusqlite::Result<Catalogue> {
    let mut skus = conn.prepare("SELECT sku FROM products")?;
    skus.query_map([], |row| row.get::<_, String>(0))?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tea(in_stock: i64) -> Product {
        Product { sku: "TEA".into(), name: "Tea".into(), unit_price_cents: 1, in_stock, discontinued: false }
    }

    #[test]
    fn products_that_are_there_keep_what_is_left_of_them() {
        let mut conn = Connection::open_in_memory().expect("in memory");
        for in_stock in [5, 50] {
            migrate(&mut conn).expect("migrate");
            load_products(&mut conn, &[tea(in_stock)]).expect("load");
        }
        let stock: (i64, i64) = conn
            .query_row("SELECT in_stock, in_stock_at_first FROM products", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("one product");
        assert_eq!(stock, (5, 5));
    }

    #[test]
    fn tables_of_a_newer_program_are_left_alone() {
        let mut conn = Connection::open_in_memory().expect("in memory");
        migrate(&mut conn).expect("migrate");
        conn.execute("INSERT INTO shop_migrations VALUES (2)", []).expect("insert");
        let error = migrate(&mut conn).expect_err("it is newer");
        assert!(matches!(error, TablesError::Newer(2)), "{error}");
    }
}
