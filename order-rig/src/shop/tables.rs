use anyhow::{Context as _, ensure};
use saga_sql::{Dialect, SqlConn, SqlError};

use crate::orders::{Catalogue, Product};

/// The shop's tables as this program knows them. A change of them is a new number and the statements that lead to it.
const VERSION: i64 = 1;
const UNUSABLE: &str = "the shop's tables cannot be used";

/// Makes the shop's tables unless they are there. A newer program may have made them, which is an error. Dropped, it leaves the
/// connection within a transaction; close it then.
pub async fn migrate<C: SqlConn>(conn: &mut C) -> anyhow::Result<()> {
    conn.execute_batch(begin_alone::<C>()).await.context(UNUSABLE)?;
    let made = make_tables(conn).await.context(UNUSABLE);
    conn.execute_batch(if made.is_ok() { "COMMIT" } else { "ROLLBACK" }).await.context(UNUSABLE)?;
    made
}

/// Begins a transaction beside which no other one changes the tables.
fn begin_alone<C: SqlConn>() -> &'static str {
    match C::DIALECT {
        Dialect::Sqlite => "BEGIN IMMEDIATE",
        // The number is this program's own: processes that start at once take turns.
        _ => "BEGIN; SELECT pg_advisory_xact_lock(7310230)",
    }
}

async fn make_tables<C: SqlConn>(conn: &mut C) -> anyhow::Result<()> {
    conn.execute_batch("CREATE TABLE IF NOT EXISTS shop_migrations (version bigint PRIMARY KEY)").await?;
    let found: i64 = conn.query_one("SELECT coalesce(max(version), 0) FROM shop_migrations", &[]).await?;
    ensure!(
        found <= VERSION,
        "the shop's tables have version {found}, but this program only knows versions up to {VERSION}; run the newer program"
    );
    if found < 1 {
        conn.execute_batch(include_str!("tables.sql")).await?;
        conn.execute_batch("INSERT INTO shop_migrations (version) VALUES (1)").await?;
    }
    Ok(())
}

/// Puts the products on the shelves that the shop does not have yet. Those it has keep the stock that is left of them.
pub async fn load_products<C: SqlConn>(conn: &mut C, products: &[Product]) -> Result<(), SqlError> {
    conn.execute_batch(begin_alone::<C>()).await?;
    for product in products {
        conn.execute(
            "INSERT INTO products (sku, name, unit_price_cents, in_stock, in_stock_at_first) VALUES ($1, $2, $3, $4, $4)
             ON CONFLICT (sku) DO NOTHING",
            &[&product.sku, &product.name, &product.unit_price_cents, &product.in_stock],
        )
        .await?;
    }
    conn.execute_batch("COMMIT").await
}

/// The products that the shop has.
pub async fn catalogue(conn: &mut impl SqlConn) -> anyhow::Result<Catalogue> {
    let skus: Vec<String> = conn.query("SELECT sku FROM products", &[]).await?;
    Ok(skus.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn tea(in_stock: i64) -> Product {
        Product { sku: "TEA".into(), name: "Tea".into(), unit_price_cents: 1, in_stock, discontinued: false }
    }

    #[tokio::test]
    async fn products_that_are_there_keep_what_is_left_of_them() {
        let mut conn = Connection::open_in_memory().expect("in memory");
        for in_stock in [5, 50] {
            migrate(&mut conn).await.expect("migrate");
            load_products(&mut conn, &[tea(in_stock)]).await.expect("load");
        }
        let stock: (i64, i64) = conn
            .query_row("SELECT in_stock, in_stock_at_first FROM products", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("one product");
        assert_eq!(stock, (5, 5));
    }

    #[tokio::test]
    async fn tables_of_a_newer_program_are_left_alone() {
        let mut conn = Connection::open_in_memory().expect("in memory");
        migrate(&mut conn).await.expect("migrate");
        conn.execute("INSERT INTO shop_migrations VALUES (2)", []).expect("insert");
        let error = migrate(&mut conn).await.expect_err("it is newer");
        assert!(format!("{error:#}").contains("the shop's tables have version 2, but"), "{error:#}");
    }
}
