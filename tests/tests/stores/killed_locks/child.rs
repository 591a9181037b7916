//! Not a test of its own: the process that is killed. A test starts this binary again with `SAGA_KILLED_LOCKS` set to the place
//! of the store, and filters for [`child`].

use std::path::Path;
use std::time::Duration;

use saga_core::{Runtime, Settings};
use saga_postgres::PostgresStore;
use saga_sqlite::SqliteStore;
use saga_tests::{Books, quick};

use super::bank::Bank;
use super::transfer::transfer;

pub(super) const STORE: &str = "SAGA_KILLED_LOCKS";
pub(super) const BANK: &str = "SAGA_KILLED_LOCKS_BANK";
pub(super) const ORDERS: u32 = 160;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let (Ok(store), Ok(bank)) = (std::env::var(STORE), std::env::var(BANK)) else { return };
    let bank = Bank::at(Path::new(&bank));
    if store.starts_with("postgres") {
        run(PostgresStore::connect(&store).await.unwrap(), bank).await;
    } else {
        run(SqliteStore::open(&store).await.unwrap(), bank).await;
    }
}

/// Starts all orders, those that are known too, and says so when each has ended.
async fn run<S: Books>(store: S, bank: Bank) {
    let saga = transfer::<S>();
    let settings = |settings: &mut Settings| {
        quick(settings);
        // A process that waits for the processor is not taken for dead: its call would end after that of another process.
        (settings.member_ttl, settings.lease_ttl) = (Duration::from_secs(3), Duration::from_secs(3));
    };
    let runtime = Runtime::builder(store).saga(&saga).state(bank).settings(settings).start().await.unwrap();
    println!("\n> ready");
    let mut running = Vec::new();
    for order in 0..ORDERS {
        running.push(runtime.start(&saga, format!("o-{order}"), order).await.unwrap());
    }
    for running in running {
        running.outcome().await.unwrap();
    }
    println!("\n> done");
    runtime.shutdown().await;
}
