//! What cannot be archived is not purged.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::saga::Branch;
use saga_core::store::{Archive, ArchiveBatch, ArchiveError, SagaFilter};
use saga_core::{Event, Outcome, Retention, Runtime, Saga, Service, StepContext, StepError, saga_step};
use serde::{Deserialize, Serialize};

use super::orders::*;

/// Keeps what it gets, in real time, unless something is wrong with it.
#[derive(Clone, Default)]
struct Cellar {
    state: Arc<Mutex<CellarState>>,
    lines: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Copy, Default)]
enum CellarState {
    #[default]
    Open,
    Full,
    OnFire,
    /// It has room for batches of so many sagas.
    Small(usize),
    /// It does not take one saga.
    Picky(&'static str),
    /// It does not answer.
    Deaf,
}

#[async_trait]
impl Archive for Cellar {
    async fn store(&self, batch: &ArchiveBatch) -> Result<(), ArchiveError> {
        let state = *self.state.lock().unwrap();
        match state {
            // The test's runtime is idle meanwhile.
            CellarState::Small(room) if batch.sagas().len() > room => return Err("the batch is too large".into()),
            CellarState::Picky(key) if batch.sagas().iter().any(|saga| saga.key.as_str() == key) => {
                return Err("it is too large".into());
            }
            CellarState::Open | CellarState::Small(_) | CellarState::Picky(_) => {
                let work = || (0..3_000_000_u32).fold(0, |sum, number| std::hint::black_box(number) ^ sum);
                _ = tokio::task::spawn_blocking(work).await?;
            }
            CellarState::Full => return Err("the cellar is full".into()),
            CellarState::OnFire => panic!("the cellar is on fire"),
            CellarState::Deaf => {
                *self.state.lock().unwrap() = CellarState::Open;
                std::future::pending::<()>().await;
            }
        }
        let lines = String::from_utf8(batch.to_json_lines())?;
        self.lines.lock().unwrap().extend(lines.lines().map(str::to_owned));
        Ok(())
    }
}

/// These orders ended a day ago, with an archive in this state, and the maintenance task has passed often since.
async fn after_passes(state: CellarState, orders_run: Range<u32>) -> (Cellar, Test, Vec<String>) {
    let cellar = Cellar::default();
    let saga = orders(Some(Retention::days(1).key_days(2)));
    let test = Test::of(saga, |builder| builder.archive(cellar.clone())).await;
    *cellar.state.lock().unwrap() = state;
    let keys: Vec<String> = orders_run.clone().map(|order| format!("o-{order}")).collect();
    for (key, order) in keys.iter().zip(orders_run) {
        test.run(key, order).await;
    }
    test.time.advance(DAY).await;
    for _ in 0..20 {
        test.time.advance(PASS).await;
    }
    (cellar, test, keys)
}

#[tokio::test]
async fn what_cannot_be_archived_is_not_purged() {
    let cellar = Cellar::default();
    let saga = orders(Some(Retention::days(1).key_days(2)));
    let test = Test::of(saga, |builder| builder.archive(cellar.clone())).await;
    *cellar.state.lock().unwrap() = CellarState::Full;
    test.run("o-1", 1).await;
    test.run("o-13", 13).await;
    test.time.advance(10 * DAY).await;
    assert_eq!(test.ages(&["o-1", "o-13"]).await, ["full", "full"]);
    *cellar.state.lock().unwrap() = CellarState::OnFire;
    test.time.advance(PASS).await;
    assert_eq!(test.ages(&["o-1", "o-13"]).await, ["full", "full"]);

    // They become tombstones late, and are tombstones for a day. Virtual time stands still while the archive writes.
    *cellar.state.lock().unwrap() = CellarState::Open;
    test.time.advance(PASS).await;
    assert_eq!(test.ages(&["o-1", "o-13"]).await, ["tombstone", "tombstone"]);
    test.time.advance(2 * DAY).await;
    assert_eq!(test.ages(&["o-1", "o-13"]).await, ["deleted", "deleted"]);
    let lines = cellar.lines.lock().unwrap().clone();
    let archived: Vec<serde_json::Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |at: usize| {
        let saga = &archived[at];
        (
            saga["key"].as_str(),
            saga["status"].as_str(),
            saga["input"].as_u64(),
            saga["records"].as_array().map(Vec::len),
        )
    };
    assert_eq!(archived.len(), 2, "{archived:?}");
    assert_eq!(said(0), (Some("o-1"), Some("completed"), Some(1), Some(2)));
    assert_eq!(said(1), (Some("o-13"), Some("compensated"), Some(13), Some(3)));
    test.runtime.shutdown().await;
}

/// The first batch takes 200 sagas. It is repeated once as it was, and then it is smaller.
#[tokio::test]
async fn a_batch_that_is_too_large_for_the_archive_becomes_smaller() {
    let (cellar, test, keys) = after_passes(CellarState::Small(60), 100..230).await;
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let ages = test.ages(&keys).await;
    assert!(ages.iter().all(|age| *age == "tombstone"), "{ages:?}");
    let lines = cellar.lines.lock().unwrap().clone();
    assert_eq!(lines.len(), keys.len(), "each is archived once");
    test.runtime.shutdown().await;
}

/// It is kept, and others are archived before it is tried again.
#[tokio::test]
async fn a_saga_that_the_archive_refuses_holds_up_no_other() {
    let (cellar, test, keys) = after_passes(CellarState::Picky("o-100"), 100..130).await;
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let ages = test.ages(&keys).await;
    assert_eq!(ages[0], "full");
    assert!(ages[1..].iter().all(|age| *age == "tombstone"), "{ages:?}");
    *cellar.state.lock().unwrap() = CellarState::Open;
    test.time.advance(DAY / 2).await;
    assert_eq!(test.ages(&keys[..1]).await, ["tombstone"]);
    test.runtime.shutdown().await;
}

/// A sub-saga goes on when its outer saga was ended by force. What became of it is in the archive before both are purged.
#[tokio::test]
async fn a_saga_is_archived_when_its_sub_sagas_have_ended() {
    let cellar = Cellar::default();
    let shipping = Saga::named("shipping").input::<u32>().step::<approve>().step::<take_out>();
    let shipping = shipping.returns::<take_out>().build().unwrap();
    let saga = Saga::named("order").input::<u32>().retention(Retention::days(1)).parallel(|group| {
        group.branch(Branch::step::<approve>).branch(|branch| branch.sub_saga::<Shipping>(&shipping))
    });
    let test = Test::of(saga.build().unwrap(), |builder| builder.saga(&shipping).archive(cellar.clone())).await;
    let (outer, inner) = ("o-99", "o-99>shipping");
    let running = test.runtime.start(&test.saga, outer, 99).await.unwrap();
    test.time.advance(DAY).await;
    let admin = test.runtime.admin();
    admin.control(outer).force_compensated("settled by phone").await.unwrap();
    assert!(matches!(running.closed().await.unwrap(), Outcome::Compensated { .. }));
    test.time.advance(2 * DAY).await;
    assert_eq!(test.ages(&[outer, inner]).await, ["full", "full"]);
    assert_eq!(*cellar.lines.lock().unwrap(), Vec::<String>::new());

    admin.control(inner).force_compensated("it was not sent").await.unwrap();
    test.time.advance(DAY).await;
    assert_eq!(test.ages(&[outer, inner]).await, ["deleted", "deleted"]);
    let lines = cellar.lines.lock().unwrap().clone();
    let status = |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap()["status"].clone();
    assert_eq!(lines.iter().map(status).collect::<Vec<_>>(), ["compensated", "compensated"]);
    test.runtime.shutdown().await;
}

/// In real time: virtual time stands still while an archive writes.
#[tokio::test]
async fn an_archive_that_does_not_answer_is_called_again() {
    let cellar = Cellar::default();
    *cellar.state.lock().unwrap() = CellarState::Deaf;
    let (store, saga) = (MemoryStore::new(), orders(None));
    let runtime = Runtime::builder(store.clone()).saga(&saga).start().await.unwrap();
    let running = runtime.start(&saga, "o-1", 1).await.unwrap();
    running.outcome().await.unwrap();
    runtime.admin().retention().purge("o-1", "the customer asks for it").await.unwrap();
    runtime.shutdown().await;

    let runtime = Runtime::builder(store).saga(&saga).archive(cellar.clone()).settings(|settings| {
        settings.poll_interval = Duration::from_millis(5);
        // The archive has this time to answer.
        settings.member_ttl = Duration::from_secs(1);
        settings.lease_ttl = Duration::from_secs(1);
    });
    let runtime = runtime.start().await.unwrap();
    while !runtime.admin().query().list(SagaFilter::default()).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(cellar.lines.lock().unwrap().len(), 1);
    runtime.shutdown().await;
}

#[derive(Debug, Serialize, Deserialize)]
struct Placed {
    order: u32,
}

impl Event for Placed {
    const NAME: &'static str = "placed";
}

#[saga_step(no_compensation)]
async fn place(ctx: &StepContext, order: u32) -> Result<(), StepError> {
    ctx.emit(&Placed { order })
}

#[saga_step(no_compensation)]
async fn confirm(_placed: Placed) -> Result<(), StepError> {
    Ok(())
}

/// A step that an event asked for is a saga below that of the event, and has a date of its own. Where both are due at once, each is
/// archived once.
#[tokio::test]
async fn a_reaction_that_is_due_with_its_saga_is_archived_once() {
    let cellar = Cellar::default();
    let kept = 120 * DAY;
    let saga = Saga::named("order").input().retention(Retention::days(120)).step::<place>().build().unwrap();
    let mail = Service::named("mail").on_topic::<Placed>("order").run::<confirm>().build().unwrap();
    let test = Test::of(saga, |builder| {
        let builder = builder.transport(MemoryTransport::new()).service(&mail).archive(cellar.clone());
        builder.settings(|settings| settings.events_retention = Some(kept))
    })
    .await;
    for order in 1..=3 {
        test.run(&format!("o-{order}"), order).await;
    }
    test.time.advance(DAY).await;
    let all = async || test.runtime.admin().query().list(SagaFilter::default()).await.unwrap().len();
    assert_eq!(all().await, 6);
    test.time.advance(kept).await;
    for _ in 0..20 {
        test.time.advance(PASS).await;
    }
    assert_eq!(all().await, 0);
    let lines = cellar.lines.lock().unwrap().clone();
    let archived: BTreeSet<&String> = lines.iter().collect();
    assert_eq!((lines.len(), archived.len()), (6, 6));
    test.runtime.shutdown().await;
}
