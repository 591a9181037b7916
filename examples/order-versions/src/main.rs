//! Deploys a new program while orders of the old one run.
//!
//! `cargo run -p order-versions` runs three processes, one after the other, on a temporary SQLite file. The first starts
//! orders, and stops while the bank is closed. The second has changed the steps without a new version, and cannot start. The
//! third has both versions: one order ends on the first version, the others move to the second.

use std::path::Path;

use order_versions::{Bank, Order, TABLES, changed, to_second, version_1, version_2};
use rusqlite::Connection;
use saga_core::{Runtime, Saga, store::SagaFilter};
use saga_sqlite::SqliteStore;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if let Some(unknown) = std::env::args().nth(1) {
        anyhow::bail!("order-versions takes no arguments, and was given {unknown:?}");
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("orders.db");
    Connection::open(&file)?.execute_batch(TABLES)?;
    first(&file).await?;
    second(&file).await?;
    third(&file).await
}

async fn deploy(
    file: &Path,
    bank: &Bank,
    sagas: &[&Saga<SqliteStore, Order>],
) -> anyhow::Result<(SqliteStore, Runtime<SqliteStore>)> {
    let store = SqliteStore::open(file).await?;
    let mut builder = Runtime::builder(store.clone()).state(bank.clone());
    for saga in sagas {
        builder = builder.saga(saga);
    }
    match builder.start().await {
        Ok(runtime) => Ok((store, runtime)),
        Err(error) => {
            store.close().await;
            Err(error.into())
        }
    }
}

async fn first(file: &Path) -> anyhow::Result<()> {
    let version_1 = version_1()?;
    let (store, runtime) = deploy(file, &Bank::default(), &[&version_1]).await?;
    for (key, pieces) in [("order-1", 1), ("order-2", 2), ("order-3", 3)] {
        runtime.start(&version_1, key, Order { key: key.to_owned(), pieces }).await?;
    }
    // The steps before the card have a record when it is tried.
    while runtime.admin().query().status("order-3").await?.is_none_or(|order| order.steps[1].retrying_since.is_none()) {
        tokio::task::yield_now().await;
    }
    runtime.shutdown().await;
    store.close().await;
    println!("three orders are under way");
    Ok(())
}

async fn second(file: &Path) -> anyhow::Result<()> {
    match deploy(file, &Bank::default(), &[&changed()?]).await {
        Ok(_) => anyhow::bail!("a definition that changed was taken"),
        Err(error) => println!("refused: {error}"),
    }
    Ok(())
}

async fn third(file: &Path) -> anyhow::Result<()> {
    let (version_1, version_2, bank) = (version_1()?, version_2()?, Bank::default());
    let (store, runtime) = deploy(file, &bank, &[&version_2]).await?;
    for waiting in runtime.admin().query().unregistered().await? {
        println!("{waiting}");
    }
    let migration = to_second(&version_1, &version_2)?;
    runtime.admin().control("order-2").migrate(&migration, "its carrier is booked by hand otherwise").await?;
    println!("{}", runtime.admin().migrate_all(&migration, "orders have carriers").await?);
    runtime.shutdown().await;
    store.close().await;

    let (_store, runtime) = deploy(file, &bank, &[&version_1, &version_2]).await?;
    runtime.start(&version_1, "order-4", Order { key: "order-4".to_owned(), pieces: 1 }).await?;
    bank.open();
    for key in ["order-1", "order-2", "order-3", "order-4"] {
        runtime.attach(key).await?.outcome().await?;
    }
    for order in runtime.admin().query().list(SagaFilter::default()).await? {
        let Some(status) = runtime.status(order.key.as_str()).await? else { continue };
        let steps: Vec<String> =
            status.steps.iter().map(|step| format!("{} {}", step.step, step.phase.as_str())).collect();
        println!("{} is {} on version {}: {}", order.key, order.status, order.version, steps.join(", "));
        for happening in status.history.iter().filter(|happening| happening.kind.as_str() == "migrated") {
            println!("  moved {}", happening.detail);
        }
    }
    runtime.shutdown().await;
    let left: u32 = Connection::open(file)?.query_one("SELECT pieces FROM stock", [], |row| row.get(0))?;
    println!("{left} pieces are left");
    Ok(())
}
