//! The shop's own tables, in the same database as the saga store: a step commits to both at once.

use std::path::PathBuf;

use saga_sql::{SqlConn, SqlError, SqlStore};

use crate::orders::{Line, Product};

/// Creates the tables, and adds the products that the shop does not have yet.
pub(crate) async fn set_up<S: SqlStore>(store: &S, products: Vec<Line<Product>>) -> anyhow::Result<()> {
    let set_up = async move |conn: &mut S::Conn| -> anyhow::Result<()> {
        create_tables(conn).await?;
        for Line { content: Product { sku, name, in_stock }, .. } in &products {
            let sql = "INSERT INTO products (sku, name, in_stock, in_stock_at_first) VALUES ($1, $2, $3, $3)
                       ON CONFLICT (sku) DO NOTHING";
            conn.execute(sql, &[sku, name, in_stock]).await?;
        }
        Ok(())
    };
    store.transaction(set_up).await
}

pub(crate) async fn create_tables(conn: &mut impl SqlConn) -> Result<(), SqlError> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS products (
             sku               TEXT   PRIMARY KEY,
             name              TEXT   NOT NULL,
             in_stock          BIGINT NOT NULL CHECK (in_stock >= 0),
             in_stock_at_first BIGINT NOT NULL
         );
         CREATE TABLE IF NOT EXISTS orders (
             order_id    TEXT   PRIMARY KEY,
             customer    TEXT   NOT NULL,
             total_cents BIGINT NOT NULL,
             status      TEXT   NOT NULL CHECK (status IN ('placed', 'confirmed', 'cancelled')),
             reason      TEXT
         );",
    )
    .await
}

/// The file of the external services: beside the shop's file, or in the working directory if the shop has a server.
pub(crate) fn outside(store: &str) -> PathBuf {
    PathBuf::from(if store.contains("://") { "order-saga" } else { store }).with_added_extension("outside")
}
