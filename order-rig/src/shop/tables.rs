use anyhow::{Context as _, ensure};

use super::{ShopConn, values};
use crate::orders::{Catalogue, Product};

/// The shop's tables as this program knows them. A change of them is a new number and the statements that lead to it.
const VERSION: i64 = 1;
const UNUSABLE: &str = "the shop's tables cannot be used";

/// Makes the shop's tables unless they are there. A newer program may have made them, which is an error. Dropped, it leaves the
/// connection within a transaction; close it then.
pub async fn migrate<C: ShopConn>(conn: &mut C) -> anyhow::Result<()> {
    conn.script(C::BEGIN_ALONE).await.context(UNUSABLE)?;
    let made = make_tables(conn).await.context(UNUSABLE);
    conn.script(if made.is_ok() { "COMMIT" } else { "ROLLBACK" }).await.context(UNUSABLE)?;
    made
}

async fn make_tables<C: ShopConn>(conn: &mut C) -> anyhow::Result<()> {
    conn.script("CREATE TABLE IF NOT EXISTS shop_migrations (version bigint PRIMARY KEY)").await?;
    let found = conn.rows("SELECT coalesce(max(version), 0) FROM shop_migrations").await?;
    let found = found.iter().try_fold(0, |_, row| row.number(0))?;
    ensure!(
        found <= VERSION,
        "the shop's tables have version {found}, but this program only knows versions up to {VERSION}; run the newer program"
    );
    if found < 1 {
        conn.script(C::TABLES).await?;
        conn.script("INSERT INTO shop_migrations (version) VALUES (1)").await?;
    }
    Ok(())
}

/// Puts the products on the shelves that the shop does not have yet. Those it has keep the stock that is left of them.
pub async fn load_products<C: ShopConn>(conn: &mut C, products: &[Product]) -> Result<(), C::Error> {
    conn.script(C::BEGIN_ALONE).await?;
    for product in products {
        conn.execute(
            "INSERT INTO products (sku, name, unit_price_cents, in_stock, in_stock_at_first) VALUES ($1, $2, $3, $4, $4)
             ON CONFLICT (sku) DO NOTHING",
            values![product.sku, product.name, product.unit_price_cents, product.in_stock],
        )
        .await?;
    }
    conn.script("COMMIT").await
}

/// The products that the shop has.
pub async fn catalogue(conn: &mut impl ShopConn) -> anyhow::Result<Catalogue> {
    let skus = conn.rows("SELECT sku FROM products").await?;
    skus.iter().map(|row| row.text(0)).collect()
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
