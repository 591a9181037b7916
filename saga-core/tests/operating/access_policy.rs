//! Messages whose sender is not proven, or may not say what it says: they become dead letters, and change nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::authorization::{AccessPolicy, SigningKey};
use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::store::{Answer, DeadLetter, DeadLetterFilter, DeadLetterReason, MessageId, MessageKind};
use saga_core::transport::{Incoming, Message, Subscription, Transport, TransportError, service_topic};
use saga_core::{Outcome, Runtime, Saga, Service, State, StepError, saga_compensation, saga_step};
use tokio::sync::watch;
use uuid::Uuid;

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", compensated)]
    pub async fn charge_card(cents: u32) -> Result<u32, StepError>;
}

/// Holds the cards back until it is opened, and keeps what was charged.
#[derive(Clone)]
struct Gateway {
    is_open: watch::Sender<bool>,
    charged: Arc<Mutex<Vec<u32>>>,
}

#[saga_step(implements = contracts::charge_card, compensate = refund_card)]
async fn charge_card(cents: u32, State(gateway): State<Gateway>) -> Result<u32, StepError> {
    // The sender lives as long as this value.
    let _ = gateway.is_open.subscribe().wait_for(|is_open| *is_open).await;
    gateway.charged.lock().unwrap().push(cents);
    Ok(cents)
}

#[saga_compensation]
async fn refund_card(_cents: u32) -> Result<(), StepError> {
    Ok(())
}

/// Keeps every message that passes: this is what an eavesdropper on the broker sees.
#[derive(Debug, Clone, Default)]
struct Tapped {
    inner: MemoryTransport,
    seen: watch::Sender<Vec<Message>>,
}

#[async_trait]
impl Transport for Tapped {
    fn name(&self) -> &'static str {
        "tapped"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        self.seen.send_modify(|seen| seen.extend(messages.iter().cloned()));
        self.inner.publish(messages).await
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.inner.subscribe(subscription).await
    }
}

impl Tapped {
    async fn first(&self, kind: MessageKind) -> Message {
        let is_it = |message: &&Message| message.kind == kind;
        let mut seen = self.seen.subscribe();
        let seen = seen.wait_for(|seen| seen.iter().any(|message| is_it(&message))).await.unwrap();
        seen.iter().find(is_it).cloned().unwrap()
    }

    /// Sends what an attacker made, past the tap.
    async fn inject(&self, message: Message) {
        self.inner.publish(vec![message]).await.pop().unwrap().unwrap();
    }
}

fn key(id: &str) -> SigningKey {
    SigningKey::new(id, format!("{id}{}", ".".repeat(32))).unwrap()
}

struct Shop {
    transport: Tapped,
    gateway: Gateway,
    saga: Saga<MemoryStore, u32>,
    orders: Runtime<MemoryStore>,
    payments: Runtime<MemoryStore>,
}

impl Shop {
    async fn open() -> Self {
        let transport = Tapped::default();
        let gateway = Gateway { is_open: watch::Sender::new(false), charged: Arc::default() };
        let service = Service::named("payments").host::<charge_card>().build().unwrap();
        let payments = Runtime::builder(MemoryStore::new())
            .transport(transport.clone())
            .service(&service)
            .state(gateway.clone())
            .sign_with(key("payments-1"))
            .access_policy(AccessPolicy::new().key(&key("orders-1"), "orders").may_ask("orders", "charge-card"))
            .start()
            .await
            .unwrap();
        let saga = Saga::named("order").input::<u32>().step::<contracts::charge_card>().build().unwrap();
        let orders = Runtime::builder(MemoryStore::new())
            .transport(transport.clone())
            .saga(&saga)
            .settings(|settings| settings.service = Some("orders".to_owned()))
            .sign_with(key("orders-1"))
            .access_policy(AccessPolicy::new().key(&key("payments-1"), "payments").key(&key("stock-1"), "stock"))
            .start()
            .await
            .unwrap();
        Self { transport, gateway, saga, orders, payments }
    }

    /// What `orders` would be told if the card had been charged, as an attacker can write it.
    async fn forged_reply(&self) -> Message {
        let command = self.transport.first(MessageKind::Command).await;
        let mut headers = command.headers.clone();
        (headers.service, headers.reply_to) = (Some("orders".into()), Some("payments".into()));
        (headers.correlation, headers.answer) = (Some(command.id), Some(Answer::Done));
        (headers.key_id, headers.signature) = (None, None);
        Message {
            id: MessageId(Uuid::from_u128(66)),
            kind: MessageKind::Reply,
            topic: service_topic("orders"),
            payload: b"1".to_vec(),
            headers,
            ..command
        }
    }
}

async fn letters(runtime: &Runtime<MemoryStore>, count: usize) -> Vec<DeadLetter> {
    loop {
        let letters = runtime.admin().dead_letters().list(DeadLetterFilter::default()).await.unwrap();
        if letters.len() >= count {
            return letters;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_forged_reply_completes_nothing() {
    let shop = Shop::open().await;
    let running = shop.orders.start(&shop.saga, "order-1", 1200).await.unwrap();
    let unsigned = shop.forged_reply().await;
    // A true key, and it is another service's.
    let mut of_stock = Message { id: MessageId(Uuid::from_u128(67)), ..unsigned.clone() };
    key("stock-1").sign(&mut of_stock);
    let mut as_stock = Message { id: MessageId(Uuid::from_u128(68)), ..unsigned.clone() };
    as_stock.headers.reply_to = Some("stock".into());
    key("stock-1").sign(&mut as_stock);
    for forged in [unsigned, of_stock, as_stock] {
        shop.transport.inject(forged).await;
    }
    let mut letters = letters(&shop.orders, 3).await;
    letters.sort_by_key(|letter| letter.letter.message.as_ref().unwrap().id.0);
    assert!(letters.iter().all(|letter| letter.letter.reason == DeadLetterReason::NotAuthorized), "{letters:?}");
    let details: Vec<&str> = letters.iter().map(|letter| letter.letter.detail.as_str()).collect();
    assert_eq!(
        details,
        [
            "it is not signed",
            "it says that it is from `payments`, and its sender may speak for `stock`",
            "`stock` may not answer for the step `charge-card`: no saga here has it done there",
        ]
    );
    assert!(shop.gateway.charged.lock().unwrap().is_empty());
    shop.gateway.is_open.send_replace(true);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(*shop.gateway.charged.lock().unwrap(), [1200]);
}

#[tokio::test(start_paused = true)]
async fn a_forged_command_is_not_done_and_its_refusal_reaches_nobody() {
    let shop = Shop::open().await;
    let running = shop.orders.start(&shop.saga, "order-1", 1200).await.unwrap();
    // The same id as the true command: a refusal of it would be taken for an answer to the true one.
    let command = shop.transport.first(MessageKind::Command).await;
    let forged = Message { payload: b"999999".to_vec(), ..command.clone() };
    shop.transport.inject(forged).await;
    let letters = letters(&shop.payments, 1).await;
    assert_eq!(letters[0].letter.reason, DeadLetterReason::NotAuthorized);
    assert_eq!(letters[0].letter.detail, "its signature is not the one that the key `orders-1` makes of it");
    shop.gateway.is_open.send_replace(true);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(*shop.gateway.charged.lock().unwrap(), [1200]);
    let replies = shop.transport.seen.borrow().iter().filter(|message| message.kind == MessageKind::Reply).count();
    assert_eq!(replies, 1, "the true command was answered, and nothing else");
}

#[tokio::test(start_paused = true)]
async fn a_person_may_let_a_refused_message_through() {
    let shop = Shop::open().await;
    shop.gateway.is_open.send_replace(true);
    shop.orders.start(&shop.saga, "order-1", 1200).await.unwrap().outcome().await.unwrap();
    let mut command = shop.transport.first(MessageKind::Command).await;
    command.id = MessageId(Uuid::from_u128(69));
    (command.headers.saga_key, command.headers.signature) = (Some("order-2".into()), None);
    command.payload = b"300".to_vec();
    shop.transport.inject(command).await;
    let letters = letters(&shop.payments, 1).await;
    shop.payments.admin().dead_letters().replay(letters[0].letter.id, "it came from a test").await.unwrap();
    while shop.gateway.charged.lock().unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(*shop.gateway.charged.lock().unwrap(), [1200, 300]);
}

#[tokio::test]
async fn a_runtime_does_not_start_with_a_policy_that_admits_nobody() {
    let error = Runtime::builder(MemoryStore::new()).access_policy(AccessPolicy::new()).start().await.unwrap_err();
    assert!(error.to_string().contains("the access policy names no user and no key"), "{error}");
}
