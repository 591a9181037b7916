//! Moves of sagas that wait for a signal, or received one, and of sagas that a person has paused.

use std::sync::Arc;
use std::time::Duration;

use saga_core::engine::{SagaAdmin, SignalOutcome};
use saga_core::env::{BoxFuture, TokioEnvironment};
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryConn, MemoryStore};
use saga_core::{Migration, Outcome, Runtime, Saga, Signal, Signaled, StepError, Wait, saga_step};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

const HOUR: Duration = Duration::from_hours(1);

type Purchase = Saga<MemoryStore, u32>;

#[derive(Debug, Serialize, Deserialize)]
struct Approval {
    by: String,
}

impl Signal for Approval {
    const NAME: &'static str = "approval";
}

/// The same signal as it is in a later version.
#[derive(Debug, Serialize, Deserialize)]
struct Consent {
    names: Vec<String>,
}

impl Signal for Consent {
    const NAME: &'static str = "approval";
}

#[saga_step(no_compensation)]
async fn weigh(_tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    Ok(order)
}

#[saga_step(no_compensation)]
async fn ship(tx: &mut MemoryConn, _order: u32, Signaled(approval): Signaled<Approval>) -> Result<(), StepError> {
    Ok(tx.put("shipped", approval.by)?)
}

#[saga_step(no_compensation)]
async fn send(tx: &mut MemoryConn, _order: u32, Signaled(consent): Signaled<Consent>) -> Result<(), StepError> {
    Ok(tx.put("shipped", consent.names.join(" and "))?)
}

fn store() -> MemoryStore {
    MemoryStore::with_environment(Arc::new(TokioEnvironment::current().unwrap()))
}

async fn runtime(store: &MemoryStore, sagas: &[&Purchase]) -> Runtime<MemoryStore> {
    let builder = Runtime::builder(store.clone());
    sagas.iter().fold(builder, |builder, saga| builder.saga(saga)).start().await.unwrap()
}

/// The step behind the wait comes an hour after it.
fn v1() -> Purchase {
    let saga = Saga::named("purchase").input::<u32>().wait_for::<Approval>(Wait::without_limit());
    saga.sleep("pause", HOUR).step::<ship>().build().unwrap()
}

fn v2() -> Purchase {
    let saga = Saga::named("purchase").input::<u32>().version(2).wait_for::<Approval>(Wait::without_limit());
    saga.sleep("pause", HOUR).step::<weigh>().step::<ship>().build().unwrap()
}

fn with_consent() -> Purchase {
    let saga = Saga::named("purchase").input::<u32>().version(2).wait_for::<Consent>(Wait::without_limit());
    saga.sleep("pause", HOUR).step::<send>().build().unwrap()
}

/// A saga whose wait is over, and one that was sent its signal before it began.
async fn signalled(runtime: &Runtime<MemoryStore>) {
    let ada = Approval { by: "Ada".to_owned() };
    runtime.start(&v1(), "over", 1).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(runtime.signal("over", "a", &ada).await.unwrap(), SignalOutcome::Delivered);
    runtime.start(&v1(), "early", 1).after(HOUR).await.unwrap();
    assert_eq!(runtime.signal("early", "a", &ada).await.unwrap(), SignalOutcome::Buffered);
    tokio::time::sleep(Duration::from_secs(1)).await;
}

async fn completes(runtime: &Runtime<MemoryStore>, key: &str, shipped: &[u8]) {
    let outcome = runtime.attach(key).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{key}: {outcome}");
    assert_eq!(runtime.store().read(|table| table.get("shipped").unwrap().to_vec()), shipped, "{key}");
}

#[tokio::test(start_paused = true)]
async fn a_saga_that_received_a_signal_moves_with_it() {
    let store = store();
    let runtime = runtime(&store, &[&v1(), &v2()]).await;
    signalled(&runtime).await;
    let migration = Migration::between(&v1(), &v2()).build().unwrap();
    let report = runtime.admin().migrate_all(&migration, "parcels are weighed now").await.unwrap();
    assert_eq!(report.to_string(), "2 moved, 0 busy, 0 refused");
    for key in ["over", "early"] {
        completes(&runtime, key, b"Ada").await;
        assert_eq!(runtime.status(key).await.unwrap().unwrap().summary.version, 2);
    }
    runtime.shutdown().await;
}

/// The message is what the wait returns, and one that waits for its turn is converted like one that was returned.
#[tokio::test(start_paused = true)]
async fn a_signal_is_converted_with_the_output_of_its_wait() {
    let store = store();
    let runtime = runtime(&store, &[&v1(), &with_consent()]).await;
    signalled(&runtime).await;
    let migration = || Migration::between(&v1(), &with_consent()).remove::<ship>();
    let plain = migration().build().unwrap();
    let refused =
        runtime.admin().control("early").migrate(&plain, "two persons consent").await.unwrap_err().to_string();
    assert!(refused.contains("the signal that `approval` received cannot be taken: "), "{refused}");
    assert!(refused.contains("missing field `names`"), "{refused}");
    let migration = migration().step_with::<Signaled<Approval>, Signaled<Consent>>(|approval| Consent {
        names: vec![approval.by, "Bob".to_owned()],
    });
    let report = runtime.admin().migrate_all(&migration.build().unwrap(), "two persons consent").await.unwrap();
    assert_eq!(report.to_string(), "2 moved, 0 busy, 0 refused");
    for key in ["over", "early"] {
        completes(&runtime, key, b"Ada and Bob").await;
    }
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn paused_sagas_move_with_the_others() {
    let store = store();
    let runtime = runtime(&store, &[&v1(), &v2()]).await;
    signalled(&runtime).await;
    runtime.admin().control("early").pause("the address is wrong").await.unwrap();
    let migration = Migration::between(&v1(), &v2()).build().unwrap();
    let looked = runtime.admin().check_migration(&migration).await.unwrap();
    assert_eq!(looked.to_string(), "2 moved, 0 busy, 0 refused", "a look sees it too");
    let report = runtime.admin().migrate_all(&migration, "parcels are weighed now").await.unwrap();
    assert_eq!(report.to_string(), "2 moved, 0 busy, 0 refused");
    runtime.admin().control("early").resume("it was corrected").await.unwrap();
    completes(&runtime, "early", b"Ada").await;
    runtime.shutdown().await;
}

/// Tells of the moves that are committed, and waits until somebody has done something about it.
#[derive(Debug)]
struct AtMoves(mpsc::Sender<mpsc::Sender<()>>);

impl CommitHook for AtMoves {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        let told = self.0.clone();
        Box::pin(async move {
            if matches!(point, CommitPoint::Committed("migrate")) {
                let (done, mut is_done) = mpsc::channel(1);
                if told.send(done).await.is_ok() {
                    is_done.recv().await;
                }
            }
            CommitFate::Proceed
        })
    }
}

/// It has the status of a list that was read before.
#[tokio::test(start_paused = true)]
async fn a_saga_that_is_resumed_meanwhile_moves_with_the_others() {
    let (told, mut moves) = mpsc::channel(1);
    let store = store().with_commit_hook(Arc::new(AtMoves(told)));
    let runtime = runtime(&store, &[&v1(), &v2()]).await;
    signalled(&runtime).await;
    runtime.admin().control("over").pause("the address is wrong").await.unwrap();
    let desk = SagaAdmin::new(store.clone()).saga(&v1());
    let resumes = tokio::spawn(async move {
        let done = moves.recv().await.unwrap();
        desk.control("over").resume("it was corrected").await.unwrap();
        drop(done);
        while let Some(done) = moves.recv().await {
            drop(done);
        }
    });
    let migration = Migration::between(&v1(), &v2()).build().unwrap();
    let report = runtime.admin().migrate_all(&migration, "parcels are weighed now").await.unwrap();
    assert_eq!(report.to_string(), "2 moved, 0 busy, 0 refused");
    assert_eq!(runtime.status("over").await.unwrap().unwrap().summary.version, 2);
    resumes.abort();
    runtime.shutdown().await;
}
