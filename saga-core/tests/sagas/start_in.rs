//! Starts in the application's own transaction are counted, each once, and only if the application committed.

use saga_core::memory::{MemoryConn, MemoryStore, MemoryTransaction};
use saga_core::{Runtime, Saga, StartError, StepError, saga_step};

#[saga_step]
async fn count(tx: &mut MemoryConn, pieces: u32) -> Result<u32, StepError> {
    tx.add("pieces", pieces.into())?;
    Ok(pieces)
}

fn counting() -> Saga<MemoryStore, u32> {
    Saga::named("counting").input::<u32>().step::<count>().build().expect("a valid saga")
}

/// Sagas that were started, and starts whose key was known.
fn counted(runtime: &Runtime<MemoryStore>) -> (u64, u64) {
    let statistics = runtime.statistics();
    (statistics.started, statistics.already_started)
}

#[tokio::test]
async fn a_start_in_a_transaction_counts_once_and_only_after_its_commit() {
    let store = MemoryStore::new();
    let saga = counting();
    let runtime = Runtime::builder(store.clone()).saga(&saga).start().await.unwrap();
    let start = async |transaction: &mut MemoryTransaction, key: &str, pieces: u32| {
        runtime.start(&saga, key, pieces).in_tx(transaction.conn()).await
    };

    let mut rolled_back = store.transaction();
    assert!(!start(&mut rolled_back, "order-1", 3).await.unwrap().already_started());
    drop(rolled_back);
    assert_eq!(counted(&runtime), (0, 0), "a saga that was rolled back was not started");

    let mut transaction = store.transaction();
    let started = start(&mut transaction, "order-1", 3).await.unwrap();
    assert_eq!(counted(&runtime), (0, 0), "nothing is committed yet");
    transaction.commit().unwrap();
    started.committed();
    assert_eq!(counted(&runtime), (1, 0));

    let mut transaction = store.transaction();
    let known = start(&mut transaction, "order-1", 3).await.unwrap();
    assert!(known.already_started());
    assert_eq!(counted(&runtime), (1, 1), "a known key counts when it is found");
    transaction.commit().unwrap();
    known.committed();
    assert_eq!(counted(&runtime), (1, 1), "and only once");

    let mut transaction = store.transaction();
    let refused = start(&mut transaction, "order-1", 4).await.map(drop).unwrap_err();
    assert!(matches!(&refused, StartError::PayloadMismatch { key, .. } if key == "order-1"), "{refused}");
    drop(transaction);
    runtime.attach("order-1").await.unwrap().outcome().await.unwrap();

    // A start outside of a transaction counts in the same way.
    assert!(matches!(runtime.start(&saga, "order-1", 4).await, Err(StartError::PayloadMismatch { .. })));
    assert_eq!(counted(&runtime), (1, 3));
    runtime.shutdown().await;
}
