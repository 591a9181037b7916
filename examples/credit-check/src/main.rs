//! Two parallel branches: one reserves stock while another company checks the credit. When both are done, each piece is
//! packed, two at once. Only an expensive order is insured. The delivery is a sub-saga, and then the order is confirmed. If a
//! step is rejected, all finished steps are undone.
//!
//! `cargo run -p credit-check` runs five orders on a temporary SQLite file and prints the outcome of each step: one order
//! completes, one has no credit, one exceeds the stock, one exceeds the boxes, and one is expensive.

mod show;
mod steps;

use rusqlite::Connection;
use saga_core::{Output, Runtime, Saga};
use saga_sqlite::SqliteStore;

use crate::{
    show::Shown,
    steps::{
        Bank, Delivery, Order, Piece, book_slot, check_credit, confirm_order, insure_parcel, pack_piece, print_label,
        reserve_stock,
    },
};

/// The stock, in pieces.
const IN_STOCK: u32 = 5;
/// The number of boxes.
const BOXES: u32 = 4;
/// How many pieces of an order are packed at once.
const PACKED_AT_ONCE: usize = 2;
/// An order above this value is insured, in cents.
const UNINSURED_CENTS_MAX: u64 = 8_000;
/// The credit limit of a customer, in cents.
const CREDIT_CENTS_MAX: u64 = 10_000;

fn deliver() -> Result<Saga<SqliteStore, String, String>, saga_core::saga::SagaError> {
    Saga::named("deliver").input::<String>().step::<book_slot>().step::<print_label>().returns::<print_label>().build()
}

#[expect(clippy::redundant_closure_for_method_calls, reason = "a closure reads as the other branch does")]
fn create_order() -> Result<Saga<SqliteStore, Order>, saga_core::saga::SagaError> {
    Saga::named("create-order")
        .input::<Order>()
        .parallel(|group| {
            group.branch(|branch| branch.step::<reserve_stock>()).branch(|branch| {
                branch.step_from::<check_credit, _>(|order: &Order| (order.customer.clone(), order.cents))
            })
        })
        .for_each::<pack_piece, _>(PACKED_AT_ONCE, |order: &Order, Output(pieces): Output<reserve_stock>| {
            (1..=pieces).map(|number| Piece { order: order.key.clone(), number }).collect()
        })
        .when("is-dear", |order: &Order| order.cents > UNINSURED_CENTS_MAX, |branch| branch.step::<insure_parcel>())
        .sub_saga_from::<Delivery, _>(&deliver()?, |order: &Order| order.key.clone())
        .step::<confirm_order>()
        .build()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if let Some(unknown) = std::env::args().nth(1) {
        anyhow::bail!("credit-check takes no arguments, and was given {unknown:?}");
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("orders.db");
    Connection::open(&file)?.execute_batch(&format!(
        "CREATE TABLE stock (pieces INTEGER NOT NULL); INSERT INTO stock VALUES ({IN_STOCK});
         CREATE TABLE boxes (number INTEGER PRIMARY KEY CHECK (number <= {BOXES}), piece TEXT NOT NULL);
         CREATE TABLE orders (key TEXT PRIMARY KEY, pieces INTEGER NOT NULL, hold TEXT, boxes TEXT NOT NULL, policy TEXT, label TEXT NOT NULL);
         CREATE TABLE slots (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE)"
    ))?;
    let create_order = create_order()?;
    let runtime = Runtime::builder(SqliteStore::open(&file).await?)
        .saga(&create_order)
        .state(Bank::new(CREDIT_CENTS_MAX))
        .start()
        .await?;
    for (key, customer, pieces, cents) in [
        ("goes-through", "ada", 2, 4_000),
        ("no-credit", "bob", 2, 40_000),
        ("no-stock", "cleo", 9, 9_000),
        ("no-boxes", "dan", 3, 5_000),
        ("dear", "eve", 1, 9_000),
    ] {
        let order = Order { key: key.to_owned(), customer: customer.to_owned(), pieces, cents };
        runtime.start(&create_order, key, order).await?.outcome().await?;
        if let Some(status) = runtime.status(key).await? {
            println!("{}", Shown(&status));
        }
    }
    runtime.shutdown().await;
    let left: u32 = Connection::open(&file)?.query_one("SELECT pieces FROM stock", [], |row| row.get(0))?;
    let used: u32 = Connection::open(&file)?.query_one("SELECT count(*) FROM boxes", [], |row| row.get(0))?;
    println!("{left} of {IN_STOCK} pieces are left, and {} of {BOXES} boxes", BOXES - used);
    Ok(())
}
