//! The order work on steno, whose sagas have undo actions of their own.
//!
//! A saga is a graph of three actions, made and started for each order by one execution coordinator, as its example
//! `trip` does. steno keeps its log where the program wants it: `steno` writes it to PostgreSQL, each event in a commit
//! of its own before the saga goes on, which is what its documentation asks of a store; `steno-memory` is the price of
//! the engine alone, with the store that comes with it, and loses everything with the process.
//!
//! An action's row is committed by a connection of ours, so a crash between it and the event repeats the action.

mod postgres_store;
mod saga;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use peer_harness::{Business, Job, Measured, Meter, Subject, call_all};
use steno::{InMemorySecStore, SecStore};

use crate::postgres_store::PostgresStore;
use crate::saga::Orders;

fn main() -> ExitCode {
    peer_harness::main(&[
        Subject { name: "steno", is_durable: true, run: |job| Box::pin(on_postgres(job)) },
        Subject { name: "steno-memory", is_durable: false, run: |job| Box::pin(in_memory(job)) },
    ])
}

async fn on_postgres(job: Job) -> Result<Measured> {
    let store = PostgresStore::create(&job).await?;
    run(job, Arc::new(store)).await
}

async fn in_memory(job: Job) -> Result<Measured> {
    run(job, Arc::new(InMemorySecStore::new())).await
}

async fn run(job: Job, store: Arc<dyn SecStore>) -> Result<Measured> {
    let orders = Arc::new(Orders::new(store, Business::connect(&job).await?));
    let meter = Meter::start()?;
    let call = move |order| {
        let orders = Arc::clone(&orders);
        async move { orders.place(order).await }
    };
    call_all(&job, call).await?;
    meter.stop()
}
