//! What a step of another service costs, and what becomes of a message that is sent from memory and lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::engine::{CancelOutcome, CompensationCause, RestartOutcome};
use saga_core::env::BoxFuture;
use saga_core::key::Tenant;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryConn, MemoryStore, MemoryTransport};
use saga_core::store::{DeadLetterFilter, Headers, Message, MessageId, MessageKind, Timestamp};
use saga_core::transport::{
    Delivery, Incoming, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};
use saga_core::{Outcome, Runtime, Saga, Service, Settings, State, StepError, saga_step};
use tokio::sync::watch;
use uuid::Uuid;

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", no_compensation)]
    pub async fn charge_card(cents: u64) -> Result<u64, StepError>;
}

#[saga_step(no_compensation)]
async fn reserve(tx: &mut MemoryConn, cents: u64) -> Result<u64, StepError> {
    Ok(tx.add("reserved", 1).map(|_| cents)?)
}

#[saga_step(implements = contracts::charge_card, no_compensation)]
async fn charge_card(tx: &mut MemoryConn, cents: u64, State(gate): State<Gate>) -> Result<u64, StepError> {
    gate.pass().await;
    Ok(tx.add("charged", 1).map(|_| cents)?)
}

/// Lets the host go on while it is open.
#[derive(Clone)]
struct Gate(watch::Sender<bool>);

impl Gate {
    async fn pass(&self) {
        // The sender lives as long as this value.
        let _ = self.0.subscribe().wait_for(|is_open| *is_open).await;
    }
}

#[saga_step(no_compensation)]
async fn confirm(tx: &mut MemoryConn, cents: u64) -> Result<u64, StepError> {
    Ok(tx.add("confirmed", 1).map(|_| cents)?)
}

/// Counts the commits of a store by what was asked of it.
#[derive(Debug, Default, Clone)]
struct Commits(Arc<Mutex<BTreeMap<&'static str, u32>>>);

impl Commits {
    fn of(&self, operation: &str) -> u32 {
        self.0.lock().unwrap().get(operation).copied().unwrap_or(0)
    }
}

impl CommitHook for Commits {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        if let CommitPoint::Committed(operation) = point {
            *self.0.lock().unwrap().entry(operation).or_default() += 1;
        }
        Box::pin(std::future::ready(CommitFate::Proceed))
    }
}

/// Fails to send, or says of what it delivers that it was delivered before, while it is told to.
#[derive(Debug, Clone)]
struct Failing {
    inner: MemoryTransport,
    fails: Arc<AtomicBool>,
    repeats: Arc<AtomicBool>,
}

struct Repeating {
    inner: Box<dyn Incoming>,
    repeats: Arc<AtomicBool>,
}

#[async_trait]
impl Incoming for Repeating {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        let mut deliveries = self.inner.receive(limit).await?;
        for delivery in &mut deliveries {
            delivery.redelivered |= self.repeats.load(Ordering::Acquire);
        }
        Ok(deliveries)
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        self.inner.settle(settled).await
    }
}

#[async_trait]
impl Transport for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        if self.fails.load(Ordering::Acquire) {
            let refused = || TransportError::new(TransportErrorKind::Unavailable, "publish", "the cable is cut");
            return messages.iter().map(|_| Err(refused())).collect();
        }
        self.inner.publish(messages).await
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        let inner = self.inner.subscribe(subscription).await?;
        Ok(Box::new(Repeating { inner, repeats: Arc::clone(&self.repeats) }))
    }
}

/// Two services, each with a store of its own.
struct Services {
    saga: Saga<MemoryStore, u64>,
    orders: Runtime<MemoryStore>,
    payments: Runtime<MemoryStore>,
    transport: Failing,
    of_orders: Commits,
    of_payments: Commits,
    charged: MemoryStore,
    fails: Arc<AtomicBool>,
    repeats: Arc<AtomicBool>,
    gate: Gate,
}

impl Services {
    async fn start() -> Self {
        let (of_orders, of_payments) = (Commits::default(), Commits::default());
        let (fails, repeats, gate) = (Arc::default(), Arc::default(), Gate(watch::Sender::new(true)));
        let inner = MemoryTransport::new();
        let transport = Failing { inner, fails: Arc::clone(&fails), repeats: Arc::clone(&repeats) };
        let store = |commits: &Commits| MemoryStore::new().with_commit_hook(Arc::new(commits.clone()));
        // Nobody looks for what nobody announced.
        let rare = |settings: &mut Settings| settings.poll_interval = Duration::from_secs(3);
        let charged = store(&of_payments);
        let service = Service::named("payments").host::<charge_card>().build().unwrap();
        let payments = Runtime::builder(charged.clone()).transport(transport.clone()).service(&service).settings(rare);
        let payments = payments.state(gate.clone()).start().await.unwrap();
        let saga = Saga::named("order").input::<u64>();
        let saga = saga.step::<reserve>().step::<contracts::charge_card>().step::<confirm>().build().unwrap();
        let orders =
            Runtime::builder(store(&of_orders)).transport(transport.clone()).saga(&saga).settings(move |settings| {
                rare(settings);
                settings.service = Some("orders".to_owned());
            });
        let orders = orders.start().await.unwrap();
        Self { saga, orders, payments, transport, of_orders, of_payments, charged, fails, repeats, gate }
    }

    fn charged(&self) -> i64 {
        self.charged.read(|table| table.counter("charged"))
    }

    async fn order(&self, key: &str) {
        let outcome = self.orders.start(&self.saga, key, 7).await.unwrap().outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_of_another_service_takes_one_commit_there() {
    let services = Services::start().await;
    // Nothing is known of the steps yet, nor of the clocks.
    services.order("first").await;
    services.order("second").await;
    let count = || {
        let of = |commits: &Commits| ["receive", "record", "lease_lanes", "transact"].map(|name| commits.of(name));
        (of(&services.of_payments), of(&services.of_orders))
    };
    let (payments, orders) = count();
    for number in 0..10 {
        services.order(&format!("order-{number}")).await;
    }
    let (payments_after, orders_after) = count();
    let spent = |after: [u32; 4], before: [u32; 4]| [0, 1, 2, 3].map(|at| after[at] - before[at]);
    assert_eq!(spent(payments_after, payments), [0, 0, 0, 10], "receive, record, lease_lanes, transact of the host");
    assert_eq!(spent(orders_after, orders), [0, 10, 0, 20], "the same of who asks: each reply is recorded by itself");
    assert_eq!(services.charged(), 12);
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_on_its_way_from_memory_is_sent_by_the_relay() {
    let services = Services::start().await;
    services.order("first").await;
    services.order("second").await;
    services.fails.store(true, Ordering::Release);
    let cut = services.orders.start(&services.saga, "cut", 7).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(services.charged(), 2, "nothing gets through");
    services.fails.store(false, Ordering::Release);
    // Well before the command would be sent once more because no reply came.
    let outcome = tokio::time::timeout(Duration::from_secs(50), cut.outcome()).await;
    assert!(matches!(outcome, Ok(Ok(Outcome::Completed { .. }))), "{outcome:?}");
    assert_eq!(services.charged(), 3);
}

/// A host writes the dead letters of one batch in a few commits, so that a faulty sender does not slow the others down.
#[tokio::test(start_paused = true)]
async fn the_dead_letters_of_a_batch_share_their_commits() {
    const LETTERS: usize = 200;
    let services = Services::start().await;
    services.order("first").await;
    let before = services.of_payments.of("record");
    let messages = (1..=LETTERS).map(|number| Message {
        id: MessageId(Uuid::from_u128(number as u128)),
        kind: MessageKind::Command,
        tenant: Tenant::default(),
        topic: "service:payments".to_owned(),
        key: format!("order-{number}"),
        event_type: "no-such-step".to_owned(),
        payload: Vec::new(),
        committed_at: Timestamp(0),
        headers: Headers::default(),
    });
    let published = services.transport.publish(messages.collect()).await;
    assert!(published.iter().all(Result::is_ok), "{published:?}");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let filter = DeadLetterFilter { limit: 2 * LETTERS, ..DeadLetterFilter::default() };
    let letters = services.payments.admin().dead_letters().list(filter).await.unwrap();
    assert_eq!(letters.len(), LETTERS, "{:?}", letters.first());
    let commits = services.of_payments.of("record") - before;
    assert!(commits <= 8, "{commits} commits for {LETTERS} dead letters");
}

/// It may be what its receiver died of: only what is stored has its attempts counted.
#[tokio::test(start_paused = true)]
async fn what_was_delivered_before_is_stored_before_it_is_handled() {
    let services = Services::start().await;
    services.order("first").await;
    services.order("second").await;
    services.repeats.store(true, Ordering::Release);
    let stored = || [&services.of_payments, &services.of_orders].map(|commits| commits.of("receive"));
    let before = stored();
    services.order("third").await;
    assert_eq!(stored(), before.map(|count| count + 1), "the command at the host, the reply at who asked");
    assert_eq!(services.charged(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_takes_long_is_stored_meanwhile_and_done_once() {
    let services = Services::start().await;
    services.order("first").await;
    services.order("second").await;
    services.gate.0.send_replace(false);
    let before = services.of_payments.of("receive");
    let slow = services.orders.start(&services.saga, "slow", 7).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(services.of_payments.of("receive"), before + 1, "who sent it does not wait for it");
    assert_eq!(services.charged(), 2);
    services.gate.0.send_replace(true);
    let outcome = slow.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(services.charged(), 3);
}

/// G5: what is kept in memory of a saga that waits for a reply is what was stored when it was restarted, so that a cancel
/// meanwhile is not written over.
#[tokio::test(start_paused = true)]
async fn g5_a_restarted_saga_that_was_cancelled_does_not_go_on_with_its_reply() {
    let services = Services::start().await;
    services.order("first").await;
    services.gate.0.send_replace(false);
    let desk = services.orders.admin();
    assert_eq!(
        desk.control("first").restart("charge-card", "again", "it was lost").await.unwrap(),
        RestartOutcome::Begun
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(services.orders.cancel("again", "it was found").await.unwrap(), CancelOutcome::Begun);
    services.gate.0.send_replace(true);
    let outcome = services.orders.attach("again").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome:?}");
    assert_eq!(services.orders.store().read(|table| table.counter("confirmed")), 1);
}
