//! Callers that wait for the changes of a saga, with a runtime and without one.

use std::time::Duration;

use saga_core::engine::{RuntimeError, SagaAdmin, SagaQuery};
use saga_core::memory::MemoryStore;
use saga_core::store::Status;
use saga_core::{Runtime, Saga, Signal, StepError, Wait, saga_step};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Approval;

impl Signal for Approval {
    const NAME: &'static str = "approval";
}

#[saga_step(no_compensation)]
async fn pack(_order: u32) -> Result<(), StepError> {
    Ok(())
}

fn order() -> Saga<MemoryStore, u32> {
    Saga::named("order").input::<u32>().wait_for::<Approval>(Wait::without_limit()).step::<pack>().build().unwrap()
}

async fn revision(query: &SagaQuery<MemoryStore>) -> u64 {
    query.status("order-1").await.unwrap().unwrap().revision
}

/// Each change is told: those of this process at once, and those of another when the store is polled.
#[tokio::test(start_paused = true)]
async fn each_change_of_a_saga_is_told() {
    let (store, order) = (MemoryStore::new(), order());
    let runtime = Runtime::builder(store.clone()).saga(&order).start().await.unwrap();
    let another = Runtime::builder(store).start().await.unwrap();
    let id = runtime.start(&order, "order-1", 7).await.unwrap().id();
    let queries = [runtime.admin().query(), another.admin().query()];
    let waiting = queries.map(|query| async move {
        let mut moves = query.moves(id).unwrap();
        let mut seen = revision(&query).await;
        loop {
            moves.next().await.unwrap();
            let now = revision(&query).await;
            if query.status("order-1").await.unwrap().unwrap().summary.status == Status::Completed {
                assert!(now > seen);
                return;
            }
            assert!(now >= seen);
            seen = now;
        }
    });
    let [here, elsewhere] = waiting;
    let approved = async {
        tokio::time::advance(Duration::from_mins(1)).await;
        runtime.signal("order-1", "form-1", &Approval).await.unwrap();
    };
    tokio::join!(here, elsewhere, approved);
    another.shutdown().await;
    runtime.shutdown().await;
}

/// A change between the making and the first wait is not missed.
#[tokio::test(start_paused = true)]
async fn a_change_before_the_first_wait_is_told() {
    let order = order();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&order).start().await.unwrap();
    let handle = runtime.start(&order, "order-1", 7).await.unwrap();
    let mut moves = runtime.admin().query().moves(handle.id()).unwrap();
    runtime.signal("order-1", "form-1", &Approval).await.unwrap();
    handle.outcome().await.unwrap();
    moves.next().await.unwrap();
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_changes_ends_with_the_runtime() {
    let order = order();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&order).start().await.unwrap();
    let handle = runtime.start(&order, "order-1", 7).await.unwrap();
    let mut moves = runtime.admin().query().moves(handle.id()).unwrap();
    let waits = async {
        loop {
            if let Err(error) = moves.next().await {
                return error;
            }
        }
    };
    let (ended, ()) = tokio::join!(waits, runtime.shutdown());
    assert!(matches!(ended, RuntimeError::Ended), "{ended:?}");
}

/// A bare store can be polled, and shows a saga also where its definition is not known.
#[tokio::test(start_paused = true)]
async fn a_bare_store_is_polled() {
    let (store, order) = (MemoryStore::new(), order());
    let runtime = Runtime::builder(store.clone()).saga(&order).start().await.unwrap();
    let handle = runtime.start(&order, "order-1", 7).await.unwrap();
    let bare = SagaAdmin::new(store).query();
    assert!(bare.moves(handle.id()).is_none());
    let before = bare.progress(&[handle.id()]).await.unwrap();
    runtime.signal("order-1", "form-1", &Approval).await.unwrap();
    handle.outcome().await.unwrap();
    let after = bare.progress(&[handle.id()]).await.unwrap();
    assert!(after[0].version > before[0].version);
    assert_eq!((before[0].status, after[0].status), (Status::Running, Status::Completed));
    let summary = bare.summary("order-1").await.unwrap().unwrap();
    assert_eq!((summary.id, summary.status, &*summary.saga), (handle.id(), Status::Completed, "order"));
    assert_eq!(bare.summary("order-2").await.unwrap(), None);
    runtime.shutdown().await;
}
