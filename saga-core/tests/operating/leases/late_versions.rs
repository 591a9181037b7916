//! A success that comes when its saga has moved to a version that the process does not know.

use std::sync::Arc;
use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::store::HistoryKind;
use saga_core::{Migration, Outcome, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use tokio::time::{sleep, timeout};

use super::bank::Way;

/// A booking desk, as one process sees it.
#[derive(Clone)]
struct Desk {
    takes: Duration,
    is_closed: bool,
}

/// Its compensation needs what it returned, so that an unknown outcome is stuck.
#[saga_step(compensate = unbook, timeout = "2m", retry(attempts = 1, base = "1s"), on_exhausted = "compensate")]
async fn book(_ctx: &StepContext, order: u32, State(desk): State<Desk>) -> Result<u32, StepError> {
    sleep(desk.takes).await;
    if desk.is_closed { Err(std::io::Error::other("503"))? } else { Ok(order) }
}

#[saga_compensation]
async fn unbook(_ctx: &StepContext, _order: u32, _booked: u32) -> Result<(), StepError> {
    Ok(())
}

fn booking(version: u32) -> Saga<MemoryStore, u32> {
    Saga::named("booking").input::<u32>().version(version).step::<book>().build().unwrap()
}

async fn process(store: &MemoryStore, way: &Way, versions: &[u32], desk: Desk) -> Runtime<MemoryStore> {
    let store = store.clone().with_commit_hook(Arc::new(way.clone()));
    let mut builder = Runtime::builder(store).state(desk).settings(|settings| settings.external_calls_max = 1);
    for version in versions {
        builder = builder.saga(&booking(*version));
    }
    builder.start().await.unwrap()
}

/// A process that knows only the first version, cut off during its call, and another one that has called the step in vain
/// and moved the stuck saga to the second version.
async fn moved_behind(store: &MemoryStore, way: &Way, closed: Duration) -> [Runtime<MemoryStore>; 2] {
    let first = process(store, way, &[1], Desk { takes: Duration::from_secs(1), is_closed: false }).await;
    first.start(&booking(1), "order-7", 7).await.unwrap();
    sleep(Duration::from_millis(500)).await;
    way.cut();
    let second = process(store, &Way::default(), &[1, 2], Desk { takes: closed, is_closed: true }).await;
    sleep(Duration::from_secs(20) + closed).await;
    let migration = Migration::between(&booking(1), &booking(2)).build().unwrap();
    second.admin().control("order-7").migrate(&migration, "the new version").await.unwrap();
    [first, second]
}

/// The operator has the step tried again, so it has a row: the process that has the row takes the success.
#[tokio::test(start_paused = true)]
async fn a_late_success_is_left_on_the_row_for_a_process_that_knows_the_version() {
    let (store, way) = (MemoryStore::new(), Way::default());
    let [first, second] = moved_behind(&store, &way, Duration::from_secs(30)).await;
    second.admin().control("order-7").retry("the desk is open").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    way.mend();

    let outcome = second.attach("order-7").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    first.shutdown().await;
    second.shutdown().await;
}

/// The operator has skipped the step. No row can take the success: the history tells of it, and the process does not keep
/// the permit of the call.
#[tokio::test(start_paused = true)]
async fn a_late_success_of_an_unknown_version_is_told_and_given_up() {
    let (store, way) = (MemoryStore::new(), Way::default());
    let [first, second] = moved_behind(&store, &way, Duration::from_secs(1)).await;
    let stuck = second.status("order-7").await.unwrap().unwrap();
    second.admin().control("order-7").at_revision(stuck.revision).skip_with(&1_u32, "looked it up").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    way.mend();

    let late = async {
        loop {
            let status = second.status("order-7").await.unwrap().unwrap();
            if let Some(late) = status.history.into_iter().find(|event| event.kind == HistoryKind::Late) {
                return late.detail;
            }
            sleep(Duration::from_secs(1)).await;
        }
    };
    let late = timeout(Duration::from_mins(1), late).await.unwrap();
    assert!(late.contains("booking version 2 is not registered here"), "{late}");
    second.shutdown().await;
    let next = first.start(&booking(1), "order-8", 8).await.unwrap();
    let outcome = timeout(Duration::from_mins(1), next.outcome()).await.unwrap().unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    first.shutdown().await;
}
