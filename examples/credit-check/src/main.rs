//! Two branches side by side: stock is reserved while another company checks the credit. The order is confirmed when both
//! are done; when one is refused, what the other did is undone.
//!
//! `cargo run -p credit-check` runs three orders on a SQLite file that is gone afterwards, and prints what became of each
//! step: one order goes through, one has no credit, one wants more than there is.

mod show;
mod steps;

use rusqlite::Connection;
use saga_core::{Runtime, Saga};
use saga_sqlite::SqliteStore;

use crate::{
    show::Shown,
    steps::{Bank, Order, check_credit, confirm_order, reserve_stock},
};

/// What is on the shelves, in pieces.
const IN_STOCK: u32 = 5;
/// What a customer may owe, in cents.
const CREDIT_CENTS_MAX: u64 = 10_000;

#[expect(clippy::redundant_closure_for_method_calls, reason = "a closure reads as the other branch does")]
fn create_order() -> Result<Saga<SqliteStore, Order>, saga_core::saga::SagaError> {
    Saga::named("create-order")
        .input::<Order>()
        .parallel(|group| {
            group
                .branch(|branch| branch.step::<reserve_stock>())
                .branch(|branch| branch.step_with::<check_credit>(|order| (order.customer.clone(), order.cents)))
        })
        .step::<confirm_order>()
        .build()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("orders.db");
    Connection::open(&file)?.execute_batch(&format!(
        "CREATE TABLE stock (pieces INTEGER NOT NULL); INSERT INTO stock VALUES ({IN_STOCK});
         CREATE TABLE orders (key TEXT PRIMARY KEY, pieces INTEGER NOT NULL, hold TEXT)"
    ))?;
    let create_order = create_order()?;
    let runtime = Runtime::builder(SqliteStore::open(&file).await?)
        .saga(&create_order)
        .state(Bank::new(CREDIT_CENTS_MAX))
        .start()
        .await?;
    for (key, customer, pieces, cents) in
        [("goes-through", "ada", 2, 4_000), ("no-credit", "bob", 2, 40_000), ("no-stock", "cleo", 9, 9_000)]
    {
        let order = Order { key: key.to_owned(), customer: customer.to_owned(), pieces, cents };
        runtime.start(&create_order, key, order).await?.outcome().await?;
        if let Some(status) = runtime.saga(key).await? {
            println!("{}", Shown(&status));
        }
    }
    runtime.shutdown().await;
    let left: u32 = Connection::open(&file)?.query_one("SELECT pieces FROM stock", [], |row| row.get(0))?;
    println!("{left} of {IN_STOCK} pieces are left");
    Ok(())
}
