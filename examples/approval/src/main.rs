//! An order above a limit waits for an approval. Its stock is reserved, and then the saga waits until an answer arrives, the
//! wait times out, or the deadline of the order passes. Small orders do not wait.
//!
//! `cargo run -p approval` runs six orders on a temporary SQLite file and prints their outcomes: a small order, an approved
//! one, a declined one, one without an answer, one whose answer arrives early, and one that is approved through a store
//! without a runtime.

mod steps;

use std::time::Duration;

use rusqlite::Connection;
use saga_core::engine::{SagaAdmin, SignalOutcome};
use saga_core::{Runtime, Saga, Wait};
use saga_sqlite::SqliteStore;

use crate::steps::{Approval, Order, confirm_order, reserve_stock, send_receipt};

/// The stock, in pieces.
const IN_STOCK: u32 = 20;
/// An order up to this many cents needs no approval.
const FREE_CENTS_MAX: u64 = 10_000;
/// How long an approver has; days in a real shop.
const TO_DECIDE: Duration = Duration::from_secs(8);
/// How long an order may take before it is confirmed.
const DEADLINE: Duration = Duration::from_mins(1);
/// How long after the confirmation the receipt is sent; the next morning in a real shop.
const UNTIL_THE_RECEIPT: Duration = Duration::from_millis(20);

fn create_order() -> Result<Saga<SqliteStore, Order>, saga_core::saga::SagaError> {
    Saga::named("create-order")
        .input::<Order>()
        .deadline(DEADLINE)
        .step::<reserve_stock>()
        .when(
            "is-large",
            |order: &Order| order.cents > FREE_CENTS_MAX,
            |branch| branch.wait_for::<Approval>(Wait::within(TO_DECIDE).or(|_order: &Order| Approval::NoAnswer)),
        )
        .step::<confirm_order>()
        .pivot()
        .sleep("until-the-receipt", UNTIL_THE_RECEIPT)
        .step::<send_receipt>()
        .build()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if let Some(unknown) = std::env::args().nth(1) {
        anyhow::bail!("approval takes no arguments, and was given {unknown:?}");
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("orders.db");
    Connection::open(&file)?.execute_batch(&format!(
        "CREATE TABLE stock (pieces INTEGER NOT NULL); INSERT INTO stock VALUES ({IN_STOCK});
         CREATE TABLE orders (key TEXT PRIMARY KEY, pieces INTEGER NOT NULL, approval TEXT NOT NULL)"
    ))?;
    let create_order = create_order()?;
    let runtime = Runtime::builder(SqliteStore::open(&file).await?).saga(&create_order).start().await?;
    let mut running = Vec::new();
    for (key, cents) in [("small", 900), ("approved", 40_000), ("declined", 50_000), ("unanswered", 60_000)] {
        let order = Order { key: key.to_owned(), pieces: 2, cents };
        running.push(runtime.start(&create_order, key, order).await?);
    }
    // This order begins later, so that its answer arrives early.
    let order = Order { key: "early".to_owned(), pieces: 2, cents: 70_000 };
    let later = Duration::from_millis(200);
    running.push(runtime.start(&create_order, "early", order).after(later).await?);
    let order = Order { key: "by-a-page".to_owned(), pieces: 2, cents: 80_000 };
    running.push(runtime.start(&create_order, "by-a-page", order).await?);

    let by = |name: &str| Approval::Granted { by: name.to_owned() };
    let answer = async |key: &str, form: &str, approval: Approval| -> anyhow::Result<()> {
        let receipt = runtime.signal(key, form, &approval).await?;
        println!("{key}: {form} says {approval}, which {}", said(receipt));
        Ok(())
    };
    answer("early", "form-1", by("Ada")).await?;
    answer("approved", "form-2", by("Ada")).await?;
    // The form is sent twice, and a second answer is too late.
    answer("approved", "form-2", by("Ada")).await?;
    answer("approved", "form-3", Approval::Declined { by: "Bob".to_owned() }).await?;
    answer("declined", "form-4", Approval::Declined { by: "Bob".to_owned() }).await?;
    // A process that runs no sagas needs only the store and the definition.
    let page = SagaAdmin::new(runtime.store().clone()).saga(&create_order);
    let receipt = page.control("by-a-page").signal("form-5", &by("Cleo")).await?;
    println!("by-a-page: form-5 {}\n", said(receipt));

    for running in running {
        let outcome = running.outcome().await?;
        println!("{}: {outcome}", running.key());
    }
    answer("unanswered", "form-6", by("Ada")).await?;
    runtime.shutdown().await;
    let left: u32 = Connection::open(&file)?.query_one("SELECT pieces FROM stock", [], |row| row.get(0))?;
    println!("{left} of {IN_STOCK} pieces are left");
    Ok(())
}

fn said(receipt: SignalOutcome) -> &'static str {
    match receipt {
        SignalOutcome::Delivered | SignalOutcome::Buffered => "counts",
        SignalOutcome::Duplicate => "was known",
        SignalOutcome::TooLate => "is too late",
    }
}
