use std::time::Duration;

use saga_core::memory::{MemoryConn, MemoryStore, MemoryTransport};
use saga_core::transport::{Subscription, Transport as _, service_topic};
use saga_core::{Runtime, Saga, Service, StepContext, StepError, saga_step};
use saga_tests::Warnings;

use crate::moody::{Mood, Moody};
use crate::{create_order, orders, parked, wait_for};

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "shipping", no_compensation)]
    pub(crate) async fn ship(parcel: i64) -> Result<i64, StepError>;
}

#[saga_step(implements = contracts::ship)]
async fn ship(tx: &mut MemoryConn, _ctx: &StepContext, parcel: i64) -> Result<i64, StepError> {
    tx.add("parcels", 1)?;
    Ok(parcel)
}

/// How many messages the relay of these tests reads at a time.
const BATCH: usize = 8;
/// What a saga of one remote step may take while another queue is full: the relays find what was not sent from memory after
/// five seconds.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn ship_order() -> Saga<MemoryStore, i64> {
    Saga::named("ship-order").input::<i64>().step::<contracts::ship>().build().unwrap()
}

/// A transport on which there is a queue of `payments`, and nobody receives from it.
async fn with_queue_of_payments(messages_max: usize) -> Moody {
    let inner = MemoryTransport::new();
    let topic = service_topic("payments");
    let subscription = Subscription { name: topic.clone(), topics: vec![topic.clone()], prefetch: 1 };
    drop(inner.subscribe(subscription).await.unwrap());
    inner.limit_queue(&topic, messages_max);
    Moody::around(inner)
}

async fn shipping(transport: &Moody) -> Runtime<MemoryStore> {
    let service = Service::named("shipping").host::<ship>().build().unwrap();
    Runtime::builder(MemoryStore::new()).transport(transport.clone()).service(&service).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn g8_a_full_queue_holds_up_no_other_service() {
    let (store, transport) = (MemoryStore::new(), with_queue_of_payments(0).await);
    let _shipping = shipping(&transport).await;
    let runtime = orders(&store, &transport, |settings| settings.relay_batch = BATCH).await;
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    // More than the relay reads at a time, and all of them older than what is for the healthy service.
    let count = 5 * BATCH;
    for number in 0..count {
        runtime.start(&create_order(), format!("o-{number}"), 12).await.unwrap();
    }
    wait_for(async || (parked(&runtime).await.len() == count).then_some(())).await;
    for number in 0..3 {
        let running = runtime.start(&ship_order(), format!("s-{number}"), number).await.unwrap();
        let ended = tokio::time::timeout(PATIENCE, running.outcome()).await;
        assert_eq!(ended.expect("a healthy service answers in time").unwrap().to_string(), "completed");
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    assert!(runtime.health().is_healthy(), "a full queue is no outage: {:?}", runtime.health());
    let waiting = parked(&runtime).await;
    assert!(waiting.iter().all(|key| key.retry_at.is_some() && key.error.contains("full")), "{waiting:?}");
    assert_eq!(warnings.of("message not sent").len(), 1, "{warnings:?}");
    // Once there is room, all of it goes.
    transport.inner.limit_queue(&service_topic("payments"), usize::MAX);
    let host = MemoryStore::new();
    let _payments = crate::payments(&host, &transport).await;
    wait_for(async || (host.read(|table| table.counter("charges")) == i64::try_from(count).unwrap()).then_some(()))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_queue_is_warned_of_once() {
    let (store, transport) = (MemoryStore::new(), Moody::default());
    let runtime = orders(&store, &transport, |_| {}).await;
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    for number in 0..50 {
        runtime.start(&create_order(), format!("o-{number}"), 12).await.unwrap();
    }
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(parked(&runtime).await.len(), 50);
    assert_eq!(warnings.of("message not sent").len(), 1, "{warnings:?}");
    assert_eq!(warnings.all().len(), 1, "{warnings:?}");
}

/// A connection that breaks leaves messages without an answer. Only one that stays without an answer is warned of.
#[tokio::test(start_paused = true)]
async fn a_message_without_an_answer_is_warned_of_from_its_second_attempt_on() {
    for (unanswered, warned) in [(1, 0), (2, 1), (6, 1)] {
        let (store, host) = (MemoryStore::new(), MemoryStore::new());
        let transport = Moody::default();
        let _payments = crate::payments(&host, &transport).await;
        let runtime = orders(&store, &transport, |_| {}).await;
        let warnings = Warnings::default();
        let _guard = tracing::subscriber::set_default(warnings.clone());
        transport.set(Mood { unanswered, ..Mood::default() });
        let running = runtime.start(&create_order(), "o-1", 12).await.unwrap();
        assert_eq!(running.outcome().await.unwrap().to_string(), "completed");
        assert_eq!(warnings.of("message not sent").len(), warned, "{unanswered} calls: {warnings:?}");
    }
}
