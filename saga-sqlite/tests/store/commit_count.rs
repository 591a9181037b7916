//! How many commits a saga costs.

use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
use saga_sqlite::SqliteStore;

#[saga_step(no_compensation)]
async fn reserve(tx: &mut rusqlite::Connection, order: u32) -> Result<(), StepError> {
    tx.execute("INSERT INTO notes (text) VALUES (?1)", [format!("reserved {order}")])?;
    Ok(())
}

#[saga_step]
async fn confirm(tx: &mut rusqlite::Connection, order: u32) -> Result<(), StepError> {
    tx.execute("INSERT INTO notes (text) VALUES (?1)", [format!("confirmed {order}")])?;
    Ok(())
}

/// Once its first step is known to be quick, a saga whose steps all run in a transaction costs one.
#[tokio::test]
async fn a_saga_of_transactional_steps_costs_one_commit() {
    const SAGAS: u32 = 50;
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("orders.db")).await.unwrap();
    let create = "CREATE TABLE notes (text TEXT NOT NULL UNIQUE) STRICT";
    store
        .write(move |conn| -> Result<(), Box<dyn std::error::Error + Send + Sync>> { Ok(conn.execute_batch(create)?) })
        .await
        .unwrap();
    let saga = Saga::named("order").input::<u32>().step::<reserve>().step::<confirm>().build().unwrap();
    let runtime = Runtime::builder(store).saga(&saga).start().await.unwrap();
    let run = async |order: u32| {
        let running = runtime.start(&saga, format!("order-{order}"), order).await.unwrap();
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    };
    run(0).await;
    let before = runtime.store().statistics().commits;
    for order in 1..=SAGAS {
        run(order).await;
    }
    let commits = runtime.store().statistics().commits - before;
    // The runtime's own, such as a sign of life, are few.
    assert!((u64::from(SAGAS)..u64::from(SAGAS) * 3 / 2).contains(&commits), "{commits} commits for {SAGAS} sagas");
    let again = runtime.start(&saga, "order-7", 7).await.unwrap();
    assert!(again.already_started(), "the same key is the same saga");
    assert!(runtime.start(&saga, "order-7", 8).await.unwrap_err().to_string().contains("order-7"));
    runtime.shutdown().await;
}
