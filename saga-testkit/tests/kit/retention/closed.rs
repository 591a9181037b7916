//! Hosts ask which sagas are closed, since the message that says so may be lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::store::{Headers, Message, MessageId, MessageKind, Sagas as _, Timestamp, Work as _};
use saga_core::transport::{Incoming, Subscription, Transport, TransportError, service_topic};
use saga_core::{Key, Retention, Runtime, Saga, Service, Tenant};
use uuid::Uuid;

use super::orders::*;

const KEYS: [&str; 2] = ["o-1", "o-13"];
/// Longer than two intervals between questions, and the time for which a closed step is kept.
const FORGOTTEN: u32 = 2 * 7 + 30;

/// Says of messages of the kind `closed` that they are sent, and loses as many of them as it is told to.
#[derive(Debug, Clone, Default)]
struct Losing {
    inner: MemoryTransport,
    to_lose: Arc<AtomicUsize>,
}

#[async_trait]
impl Transport for Losing {
    fn name(&self) -> &'static str {
        "losing"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let mut answers = Vec::new();
        for message in messages {
            let left = |left: usize| left.checked_sub(1);
            let is_closed = message.kind == MessageKind::Closed;
            if is_closed && self.to_lose.fetch_update(Ordering::AcqRel, Ordering::Acquire, left).is_ok() {
                answers.push(Ok(()));
            } else {
                answers.extend(self.inner.publish(vec![message]).await);
            }
        }
        answers
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.inner.subscribe(subscription).await
    }
}

/// A shop whose orders are kept for 40 days and their keys for 110, and the carrier that it asks.
struct Shop {
    test: Test,
    transport: Losing,
    carriers_store: MemoryStore,
    carrier: Runtime<MemoryStore>,
}

fn orders_with_truck() -> Saga<MemoryStore, u32> {
    let saga = Saga::named("order").input().retention(Retention::days(40).key_days(110));
    saga.step::<contracts::book_truck>().step::<approve>().build().unwrap()
}

impl Shop {
    async fn open() -> Self {
        let transport = Losing::default();
        let test = Test::of(orders_with_truck(), |builder| {
            builder.transport(transport.clone()).settings(|settings| settings.service = Some("shop".to_owned()))
        })
        .await;
        let service = Service::named("carrier").host::<book_truck>().build().unwrap();
        let carriers_store = MemoryStore::with_environment(test.time.environment());
        let carrier = Runtime::builder(carriers_store.clone()).environment(test.time.environment());
        let carrier = carrier.service(&service).transport(transport.clone()).start().await.unwrap();
        Self { test, transport, carriers_store, carrier }
    }

    fn lose(&self, messages: usize) {
        self.transport.to_lose.store(messages, Ordering::Release);
    }

    /// Day by day: where nothing else happens, the maintenance task looks at the end of each.
    async fn days(&self, days: u32) {
        for _ in 0..days {
            self.test.time.advance(DAY).await;
        }
        self.test.time.advance(PASS).await;
    }

    /// Which of the orders the carrier still knows.
    async fn known_to_carrier(&self, keys: &[&str]) -> Vec<bool> {
        let mut known = Vec::new();
        for key in keys {
            let key = Key::from_stored(&format!("{key}>book-truck")).unwrap();
            known.push(self.carriers_store.saga(&Tenant::default(), &key).await.unwrap().is_some());
        }
        known
    }

    async fn close(self) {
        self.test.runtime.shutdown().await;
        self.carrier.shutdown().await;
    }
}

/// G13: a host keeps nothing for ever because one message was lost, and what its saga may still need it keeps.
#[tokio::test]
async fn g13_a_host_asks_for_a_lost_closed() {
    let shop = Shop::open().await;
    shop.test.run("o-1", 1).await;
    shop.test.run("o-13", 13).await;
    drop(shop.test.runtime.start(&shop.test.saga, "o-99", 99).await.unwrap());
    shop.days(39).await;
    shop.lose(1);
    shop.days(1).await;
    assert_eq!(shop.test.ages(&["o-1", "o-13", "o-99"]).await, ["tombstone", "tombstone", "full"]);
    assert_eq!(shop.transport.to_lose.load(Ordering::Acquire), 0, "closed was lost");
    shop.days(FORGOTTEN).await;
    assert_eq!(shop.known_to_carrier(&KEYS).await, [false, false]);
    assert_eq!(shop.known_to_carrier(&["o-99"]).await, [true], "its saga is not closed");
    shop.close().await;
}

/// Questions and answers may be lost like every message.
#[tokio::test]
async fn a_question_that_is_lost_is_asked_again() {
    let shop = Shop::open().await;
    shop.test.run("o-1", 1).await;
    shop.days(39).await;
    // The message of the coordinator, a question, and the answer to the next one or that one itself.
    shop.lose(3);
    shop.days(1 + 3 * 7).await;
    assert_eq!(shop.transport.to_lose.load(Ordering::Acquire), 0);
    shop.days(FORGOTTEN).await;
    assert_eq!(shop.known_to_carrier(&["o-1"]).await, [false]);
    shop.close().await;
}

/// A step that has not ended is not purged, and is not forgotten either when it ends after its saga was closed.
#[tokio::test]
async fn g13_a_step_that_ends_after_its_saga_was_closed_is_kept_until_it_is_asked_for() {
    let shop = Shop::open().await;
    drop(shop.test.runtime.start(&shop.test.saga, "o-77", 77).await.unwrap());
    shop.days(1).await;
    shop.test.runtime.admin().control("o-77").force_completed("the truck came without us").await.unwrap();
    shop.days(40).await;
    assert_eq!(shop.test.age("o-77").await, "tombstone");
    shop.days(FORGOTTEN).await;
    assert_eq!(shop.known_to_carrier(&["o-77"]).await, [true], "it is stuck, and a person has to look at it");
    let hosted = shop.carrier.admin().control("o-77>book-truck");
    hosted.force_completed("the truck came").await.unwrap();
    shop.days(6).await;
    assert_eq!(shop.known_to_carrier(&["o-77"]).await, [true]);
    shop.days(FORGOTTEN).await;
    assert_eq!(shop.known_to_carrier(&["o-77"]).await, [false]);
    shop.close().await;
}

/// G13: the record that it would meet may be that of a later saga under the key.
#[tokio::test]
async fn g13_an_answer_to_an_old_question_changes_nothing() {
    let shop = Shop::open().await;
    shop.test.run("o-1", 1).await;
    shop.test.run("o-13", 13).await;
    shop.days(1).await;
    let now = shop.carriers_store.now().await.unwrap();
    for (number, key, asked_at) in [(1, "o-1", Timestamp(0)), (2, "o-13", now)] {
        let answer = Message {
            event_type: "closed".to_owned(),
            payload: format!(r#"{{"sagas":["{key}"],"asked_at":{}}}"#, asked_at.0).into_bytes(),
            committed_at: now,
            headers: Headers { reply_to: Some("shop".to_owned()), ..Headers::default() },
            ..Message::new(MessageId(Uuid::from_u128(number)), MessageKind::Closed, service_topic("carrier"))
        };
        shop.transport.publish(vec![answer]).await.remove(0).unwrap();
    }
    shop.days(30).await;
    assert_eq!(shop.known_to_carrier(&KEYS).await, [true, false]);
    shop.close().await;
}

/// G2: a coordinator that has lost its database does not make its hosts forget what they did while its keys may be in use.
#[tokio::test]
async fn g2_a_coordinator_without_its_database_closes_nothing_too_early() {
    let shop = Shop::open().await;
    shop.test.run("o-1", 1).await;
    shop.test.runtime.shutdown().await;
    let time = &shop.test.time;
    let empty = MemoryStore::with_environment(time.environment());
    let runtime = Runtime::builder(empty).environment(time.environment()).saga(&shop.test.saga);
    let runtime = runtime.transport(shop.transport.clone());
    let runtime = runtime.settings(|settings| settings.service = Some("shop".to_owned())).start().await.unwrap();
    shop.days(109).await;
    assert_eq!(shop.known_to_carrier(&["o-1"]).await, [true], "the order may be placed again under this key");
    shop.days(1 + FORGOTTEN).await;
    assert_eq!(shop.known_to_carrier(&["o-1"]).await, [false], "its key would be new by now");
    runtime.shutdown().await;
    shop.close().await;
}
