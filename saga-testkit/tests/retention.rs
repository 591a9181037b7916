//! Retention: ended sagas become tombstones and then are deleted; what may still be acted on is kept (G13).
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::engine::{Archive, ArchiveBatch, ArchiveError, RuntimeBuilder, RuntimeError};
use saga_core::memory::{MemoryConn, MemoryStore, MemoryTransport};
use saga_core::store::{Sagas as _, Status};
use saga_core::{
    Key, Outcome, Output, Retention, Runtime, Saga, SagaFailure, Service, StartError, StepError, SubSaga, Tenant,
    saga_compensation, saga_step,
};
use saga_testkit::VirtualTime;

const DAY: Duration = Duration::from_hours(24);
/// The maintenance task looks at least so often.
const PASS: Duration = Duration::from_mins(11);

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "carrier", compensated)]
    pub async fn book_truck(order: u32) -> Result<u32, StepError>;
}

#[saga_step(implements = contracts::book_truck, compensate = cancel_truck)]
async fn book_truck(order: u32) -> Result<u32, StepError> {
    Ok(order)
}

#[saga_compensation]
async fn cancel_truck(_order: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = put_back)]
async fn take_out(tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    tx.add("taken", 1)?;
    Ok(order)
}

#[saga_compensation]
async fn put_back(tx: &mut MemoryConn, _order: u32) -> Result<(), StepError> {
    tx.add("taken", -1)?;
    Ok(())
}

/// Nobody wants order 13, and order 99 needs a person.
#[saga_step(no_compensation)]
async fn approve(order: u32) -> Result<(), StepError> {
    match order {
        13 => Err(StepError::reject("nobody wants it")),
        99 => Err(StepError::stuck("a person has to look at it")),
        _ => Ok(()),
    }
}

struct Shipping;

impl SubSaga for Shipping {
    const NAME: &'static str = "shipping";
    type Input = u32;
    type Output = u32;
}

#[saga_step(no_compensation)]
async fn bill(tx: &mut MemoryConn, _order: u32, Output(_shipped): Output<Shipping>) -> Result<(), StepError> {
    tx.add("billed", 1)?;
    Ok(())
}

fn orders(retention: Option<Retention>) -> Saga<MemoryStore, u32> {
    let saga = Saga::named("order").input();
    let saga = if let Some(retention) = retention { saga.retention(retention) } else { saga };
    saga.step::<take_out>().step::<approve>().build().unwrap()
}

struct Test {
    time: VirtualTime,
    store: MemoryStore,
    saga: Saga<MemoryStore, u32>,
    runtime: Runtime<MemoryStore>,
}

impl Test {
    async fn of(saga: Saga<MemoryStore, u32>, with: impl FnOnce(RuntimeBuilder<MemoryStore>) -> RuntimeBuilder<MemoryStore>) -> Self {
        let time = VirtualTime::new();
        let store = MemoryStore::with_environment(time.environment());
        let runtime = Runtime::builder(store.clone()).environment(time.environment()).saga(&saga);
        let runtime = with(runtime).start().await.unwrap();
        Self { time, store, saga, runtime }
    }

    async fn keeping(retention: Retention) -> Self {
        Self::of(orders(Some(retention)), |builder| builder).await
    }

    async fn run(&self, key: &str, order: u32) -> Outcome {
        self.runtime.start(&self.saga, key, order).await.unwrap().outcome().await.unwrap()
    }

    /// Whether the saga is kept in full, as a tombstone, or not at all.
    async fn age(&self, key: &str) -> &'static str {
        let row = self.store.saga(&Tenant::default(), &Key::from_stored(key).unwrap()).await.unwrap();
        match row {
            None => "deleted",
            Some(row) if row.is_tombstone() => "tombstone",
            Some(_) => "full",
        }
    }

    async fn ages(&self, keys: &[&str]) -> Vec<&'static str> {
        let mut ages = Vec::new();
        for key in keys {
            ages.push(self.age(key).await);
        }
        ages
    }
}

#[tokio::test]
async fn an_ended_saga_becomes_a_tombstone_and_then_is_deleted() {
    let test = Test::keeping(Retention::days(30).compensated_days(90).key_days(400)).await;
    test.run("o-1", 1).await;
    test.run("o-13", 13).await;
    drop(test.runtime.start(&test.saga, "o-99", 99).await.unwrap());
    let keys = ["o-1", "o-13", "o-99"];
    test.time.advance(29 * DAY).await;
    assert_eq!(test.ages(&keys).await, ["full", "full", "full"]);
    test.time.advance(DAY + PASS).await;
    assert_eq!(test.ages(&keys).await, ["tombstone", "full", "full"]);
    test.time.advance(60 * DAY).await;
    assert_eq!(test.ages(&keys).await, ["tombstone", "tombstone", "full"]);
    test.time.advance(310 * DAY).await;
    assert_eq!(test.ages(&keys).await, ["deleted", "deleted", "full"], "a stuck saga never ages");
    assert!(test.time.statistics().calls < 1_000_000, "{:?}", test.time.statistics());
    test.runtime.shutdown().await;
}

#[tokio::test]
async fn a_repeated_start_is_known_while_the_tombstone_is_kept() {
    let test = Test::keeping(Retention::days(1).key_days(10)).await;
    test.run("o-1", 1).await;
    test.time.advance(DAY + PASS).await;
    let again = test.runtime.start(&test.saga, "o-1", 1).await.unwrap();
    assert!(again.already_started());
    assert!(matches!(again.outcome().await.unwrap(), Outcome::Tombstone { status: Status::Completed, .. }));
    let other = test.runtime.start(&test.saga, "o-1", 2).await.unwrap_err();
    assert!(matches!(&other, StartError::PayloadMismatch { .. }), "{other}");
    assert_eq!(test.store.read(|table| table.counter("taken")), 1);

    test.time.advance(9 * DAY).await;
    let anew = test.runtime.start(&test.saga, "o-1", 2).await.unwrap();
    assert!(!anew.already_started());
    assert!(matches!(anew.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(test.store.read(|table| table.counter("taken")), 2);
    test.runtime.shutdown().await;
}

#[tokio::test]
async fn a_tombstone_says_what_it_is() {
    let test = Test::keeping(Retention::days(1).key_days(10)).await;
    test.run("o-13", 13).await;
    test.time.advance(DAY + PASS).await;
    let status = test.runtime.status("o-13").await.unwrap().unwrap();
    let json = serde_json::to_value(&status).unwrap();
    assert_eq!((&json["status"], &json["outcome"]["kind"]), (&"compensated".into(), &"tombstone".into()));
    assert_eq!((status.steps.len(), status.history.len()), (0, 0));
    assert_eq!(status.summary.outcome.unwrap().to_string(), "compensated, and only its tombstone is kept");
    let failure = test.runtime.attach("o-13").await.unwrap().result().await.unwrap_err();
    assert!(matches!(failure, SagaFailure::Tombstone { status: Status::Compensated }), "{failure}");
    let refused = test.runtime.admin().control("o-13").cancel("try it").await;
    println!("{refused:?}");
    let refused = test.runtime.admin().control("o-13").restart("o-14", "again").await.unwrap_err();
    assert!(matches!(&refused, RuntimeError::Tombstone { .. }), "{refused}");
    test.runtime.shutdown().await;
}
