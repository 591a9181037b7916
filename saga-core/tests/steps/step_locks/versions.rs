//! A new version of the program whose step has no lock any more.

use std::time::Duration;

use saga_core::engine::SemanticLocksFilter;
use saga_core::memory::MemoryStore;
use saga_core::{Entity, Outcome, Runtime, Saga, StepError, saga_step};

/// A call that never ends.
#[saga_step(no_compensation, lock = |_order| Entity::new("account", "ada"))]
async fn charge(_order: u32) -> Result<(), StepError> {
    std::future::pending().await
}

/// The same step without its lock.
#[saga_step(no_compensation, name = "charge")]
async fn charge_freely(_order: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation, lock = |_order| Entity::new("account", "ada"))]
async fn refund(_order: u32) -> Result<(), StepError> {
    Ok(())
}

/// G11: the version without the lock records the result, and does not end the lock. The sagas that wait for it are not forgotten.
#[tokio::test(start_paused = true)]
async fn g11_a_lock_that_a_step_has_no_more_ends_with_its_command() {
    const IN_TIME: Duration = Duration::from_hours(1);
    let store = MemoryStore::new();
    let locked = Saga::named("order").input::<u32>().step::<charge>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&locked).start().await.unwrap();
    runtime.start(&locked, "o-1", 1).await.unwrap();
    while runtime.admin().query().semantic_locks(SemanticLocksFilter::default()).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    // The call is dropped without an answer, and keeps its lock.
    runtime.shutdown().await;

    let free = Saga::named("order").input::<u32>().step::<charge_freely>().build().unwrap();
    let waiting = Saga::named("refund").input::<u32>().step::<refund>().build().unwrap();
    let runtime = Runtime::builder(store).saga(&free).saga(&waiting).start().await.unwrap();
    let first = runtime.start(&free, "o-1", 1).await.unwrap();
    assert!(matches!(first.outcome().await.unwrap(), Outcome::Completed { .. }));
    let second = runtime.start(&waiting, "r-1", 1).await.unwrap();
    let outcome =
        tokio::time::timeout(IN_TIME, second.outcome()).await.expect("it waits for a lock that no process ends");
    assert!(matches!(outcome.unwrap(), Outcome::Completed { .. }));
    runtime.shutdown().await;
}
