//! What waits for one slow service leaves lines and places for everybody else.
#![cfg(feature = "macros")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Outcome, Runtime, Saga, State, StepError, saga_step};
use tokio::time::Instant;

/// How long one call of the slow gateway takes.
const CALL: Duration = Duration::from_secs(25);
/// What nobody waits longer for who does not need the gateway.
const SOON: Duration = Duration::from_secs(1);
/// How many sagas wait for the gateway.
const WAITING: u32 = 1_500;

/// How many calls the gateway has at once.
#[derive(Clone, Default)]
struct Gateway(Arc<[AtomicU32; 3]>);

impl Gateway {
    async fn call(&self) {
        let [now, most, all] = &*self.0;
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tokio::time::sleep(CALL).await;
        now.fetch_sub(1, Ordering::SeqCst);
        all.fetch_add(1, Ordering::SeqCst);
    }

    fn most(&self) -> u32 {
        self.0[1].load(Ordering::SeqCst)
    }

    fn all(&self) -> u32 {
        self.0[2].load(Ordering::SeqCst)
    }
}

#[saga_step(no_compensation, timeout = "50s")]
async fn call_gateway(_order: u32, State(gateway): State<Gateway>) -> Result<(), StepError> {
    gateway.call().await;
    Ok(())
}

#[saga_step(no_compensation)]
async fn note(_conn: &mut MemoryConn, _order: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation)]
async fn ask(_order: u32) -> Result<(), StepError> {
    Ok(())
}

fn slow() -> Saga<MemoryStore, u32> {
    Saga::named("slow").input::<u32>().step::<call_gateway>().build().unwrap()
}

fn noting() -> Saga<MemoryStore, u32> {
    Saga::named("noting").input::<u32>().step::<note>().build().unwrap()
}

fn asking() -> Saga<MemoryStore, u32> {
    Saga::named("asking").input::<u32>().step::<ask>().build().unwrap()
}

fn orders(count: u32) -> impl Iterator<Item = (String, u32)> {
    (0..count).map(|order| (format!("slow-{order}"), order))
}

/// How long a saga takes beside those that wait for the gateway.
async fn beside_the_gateway(slow: &Saga<MemoryStore, u32>, other: &Saga<MemoryStore, u32>) -> Duration {
    let runtime = Runtime::builder(MemoryStore::new()).saga(slow).saga(other).state(Gateway::default());
    let runtime = runtime.start().await.unwrap();
    runtime.start_many(slow, orders(WAITING)).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let began = Instant::now();
    let outcome = runtime.start(other, "other", 1).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_transactional_step_does_not_wait_for_the_calls_of_others() {
    let took = beside_the_gateway(&slow(), &noting()).await;
    assert!(took <= SOON, "it took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_external_step_does_not_wait_for_the_calls_of_others() {
    let took = beside_the_gateway(&slow(), &asking()).await;
    assert!(took <= SOON, "it took {took:?}");
}

#[saga_step(no_compensation, timeout = "50s", max_concurrent = 8)]
async fn call_limited(_order: u32, State(gateway): State<Gateway>) -> Result<(), StepError> {
    gateway.call().await;
    Ok(())
}

/// Runs sagas that call the gateway, and one of another definition beside them, which is told that it is there.
async fn all_through_the_gateway(slow: &Saga<MemoryStore, u32>, count: u32) -> (Gateway, Duration) {
    let (gateway, began) = (Gateway::default(), Instant::now());
    let builder = Runtime::builder(MemoryStore::new()).saga(slow).saga(&asking()).state(gateway.clone());
    let runtime = builder.start().await.unwrap();
    for saga in runtime.start_many(slow, orders(count)).await {
        let outcome = saga.unwrap().outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    }
    assert_eq!(gateway.all(), count, "each saga called once");
    (gateway, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_of_a_step_than_its_limit() {
    let limited = Saga::named("slow").input::<u32>().step::<call_limited>().build().unwrap();
    let (gateway, took) = all_through_the_gateway(&limited, 100).await;
    assert_eq!(gateway.most(), 8, "calls at once");
    assert!(took <= 13 * CALL + SOON, "no call waited for nothing: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_of_a_saga_than_its_limit() {
    let limited = Saga::named("slow").input::<u32>().max_concurrent(5).step::<call_gateway>().build().unwrap();
    let (gateway, took) = all_through_the_gateway(&limited, 100).await;
    assert_eq!(gateway.most(), 5, "calls at once");
    assert!(took <= 20 * CALL + SOON, "no call waited for nothing: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn one_saga_has_all_the_calls_that_were_asked_for() {
    let (gateway, took) = all_through_the_gateway(&slow(), 640).await;
    assert_eq!(gateway.most(), 64, "calls at once");
    assert!(took <= 10 * CALL + SOON, "no line waited for nothing: {took:?}");
}

/// A transaction that waits for something of its own.
#[saga_step(no_compensation, timeout = "50s")]
async fn wait_in_transaction(
    _conn: &mut MemoryConn,
    _order: u32,
    State(gateway): State<Gateway>,
) -> Result<(), StepError> {
    gateway.call().await;
    Ok(())
}

#[saga_step(no_compensation, timeout = "50s", max_concurrent = 2)]
async fn wait_limited(_conn: &mut MemoryConn, _order: u32, State(gateway): State<Gateway>) -> Result<(), StepError> {
    gateway.call().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn slow_transactions_leave_one_to_others() {
    let slow = Saga::named("slow").input::<u32>().step::<wait_in_transaction>().build().unwrap();
    let gateway = Gateway::default();
    let builder = Runtime::builder(MemoryStore::new()).saga(&slow).saga(&noting()).state(gateway.clone());
    let runtime = builder.settings(|settings| settings.batch_max = 1).start().await.unwrap();
    runtime.start_many(&slow, orders(50)).await;
    tokio::time::sleep(SOON).await;
    let began = Instant::now();
    let outcome = runtime.start(&noting(), "other", 1).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert!(began.elapsed() <= SOON, "it took {:?}", began.elapsed());
    assert_eq!(gateway.most(), 7, "of 8 transactions");
}

#[tokio::test(start_paused = true)]
async fn no_more_transactions_of_a_step_than_its_limit() {
    let slow = Saga::named("slow").input::<u32>().step::<wait_limited>().build().unwrap();
    let gateway = Gateway::default();
    let builder = Runtime::builder(MemoryStore::new()).saga(&slow).state(gateway.clone());
    let runtime = builder.settings(|settings| settings.batch_max = 1).start().await.unwrap();
    for saga in runtime.start_many(&slow, orders(20)).await {
        let outcome = saga.unwrap().outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    }
    assert_eq!((gateway.most(), gateway.all()), (2, 20), "transactions at once, and all");
}

/// The second step of a saga whose first one is done at once: it comes from a commit, not from a start.
#[tokio::test(start_paused = true)]
async fn what_a_commit_leads_to_obeys_the_limit() {
    let slow = Saga::named("slow").input::<u32>().step::<note>().step::<call_limited>().build().unwrap();
    let (gateway, took) = all_through_the_gateway(&slow, 40).await;
    assert_eq!(gateway.most(), 8, "calls at once");
    assert!(took <= 5 * CALL + SOON, "no call waited for nothing: {took:?}");
}
