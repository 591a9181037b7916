//! Two services on stores of their own, with all that happens between them under the control of a test.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryConn, MemoryStore, MemoryTransport, PendingCommit};
use saga_core::saga::StepBuilder;
use saga_core::store::{Message, StoreError, StoreErrorKind};
use saga_core::transport::{
    Delivery, Incoming, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};
use saga_core::{Outcome, Runtime, Saga, Service, Settings, State, StepError, saga_step};
use tokio::sync::watch;

pub(crate) mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", no_compensation)]
    pub async fn charge_card(cents: u64) -> Result<u64, StepError>;

    #[saga_step(service = "payments", no_compensation)]
    pub async fn send_receipt(cents: u64) -> Result<u64, StepError>;
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

#[saga_step(implements = contracts::send_receipt, no_compensation)]
async fn send_receipt(tx: &mut MemoryConn, cents: u64) -> Result<u64, StepError> {
    Ok(tx.add("receipts", 1).map(|_| cents)?)
}

/// Lets a step go on while it is open.
#[derive(Clone)]
pub(crate) struct Gate(pub(crate) watch::Sender<bool>);

impl Gate {
    fn open() -> Self {
        Self(watch::Sender::new(true))
    }

    async fn pass(&self) {
        // The sender lives as long as this value.
        let _ = self.0.subscribe().wait_for(|is_open| *is_open).await;
    }
}

/// What the last step of an order does next instead of going well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirming {
    Fails,
    Rejects,
    TakesLong,
}

/// The last step of an order, under the control of a test.
#[derive(Clone)]
pub(crate) struct LastStep {
    pub(crate) next: Arc<Mutex<Option<Confirming>>>,
    pub(crate) gate: Gate,
    /// Set while it waits at its gate.
    pub(crate) has_begun: watch::Sender<bool>,
}

#[saga_step(no_compensation)]
pub(crate) async fn confirm(tx: &mut MemoryConn, cents: u64, State(last): State<LastStep>) -> Result<u64, StepError> {
    tx.add("confirmed", 1)?;
    last.has_begun.send_replace(true);
    last.gate.pass().await;
    let next = last.next.lock().unwrap().take();
    match next {
        Some(Confirming::Fails) => Err(StepError::retry("the printer is busy")),
        Some(Confirming::Rejects) => Err(StepError::reject("sold out")),
        Some(Confirming::TakesLong) => {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(cents)
        }
        None => Ok(cents),
    }
}

/// What becomes of a step transaction that is about to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Commits,
    Fails,
    /// The answer is lost, and it was committed.
    IsLost,
    /// The answer is lost, and nothing was committed.
    IsLostAndRolledBack,
}

/// Counts the commits of a store by what was asked of it, and decides about its next step transactions.
#[derive(Debug, Default, Clone)]
pub(crate) struct Commits {
    counts: Arc<Mutex<BTreeMap<&'static str, u32>>>,
    fates: Arc<Mutex<VecDeque<Fate>>>,
    in_doubt: Arc<Mutex<Option<Fate>>>,
}

impl Commits {
    pub(crate) fn of(&self, operation: &str) -> u32 {
        self.counts.lock().unwrap().get(operation).copied().unwrap_or(0)
    }

    /// How often decisions were recorded by themselves, and how many step transactions were committed.
    pub(crate) fn records_and_steps(&self) -> (u32, u32) {
        (self.of("record"), self.of("transact"))
    }

    /// The fates of the next step transactions.
    pub(crate) fn next(&self, fates: impl IntoIterator<Item = Fate>) {
        self.fates.lock().unwrap().extend(fates);
    }

    fn fate(&self) -> CommitFate {
        let fate = self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Commits);
        match fate {
            Fate::Commits => CommitFate::Proceed,
            Fate::Fails => {
                CommitFate::Fail(StoreError::new(StoreErrorKind::Unavailable, "transact", "the cable is cut"))
            }
            Fate::IsLost | Fate::IsLostAndRolledBack => {
                *self.in_doubt.lock().unwrap() = Some(fate);
                CommitFate::InDoubt
            }
        }
    }
}

impl CommitHook for Commits {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        if let CommitPoint::Committed(operation) = point {
            *self.counts.lock().unwrap().entry(operation).or_default() += 1;
        }
        let is_step = matches!(point, CommitPoint::Committing("transact"));
        Box::pin(std::future::ready(if is_step { self.fate() } else { CommitFate::Proceed }))
    }

    fn in_doubt(&self, commit: PendingCommit) {
        if self.in_doubt.lock().unwrap().take() == Some(Fate::IsLost) {
            commit.commit();
        }
    }
}

/// Fails to send, sends all twice, or says of what it delivers that it was delivered before, while it is told to.
#[derive(Debug, Clone)]
pub(crate) struct Failing {
    inner: MemoryTransport,
    fails: Arc<AtomicBool>,
    doubles: Arc<AtomicBool>,
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
        if self.doubles.load(Ordering::Acquire) {
            self.inner.publish(messages.clone()).await;
        }
        self.inner.publish(messages).await
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        let inner = self.inner.subscribe(subscription).await?;
        Ok(Box::new(Repeating { inner, repeats: Arc::clone(&self.repeats) }))
    }
}

/// Two services, each with a store of its own.
pub(crate) struct Services {
    pub(crate) saga: Saga<MemoryStore, u64>,
    /// The same with two steps of the other service at once.
    pub(crate) parallel: Saga<MemoryStore, u64>,
    pub(crate) orders: Runtime<MemoryStore>,
    pub(crate) payments: Runtime<MemoryStore>,
    pub(crate) transport: Failing,
    pub(crate) of_orders: Commits,
    pub(crate) of_payments: Commits,
    charged: MemoryStore,
    pub(crate) fails: Arc<AtomicBool>,
    pub(crate) doubles: Arc<AtomicBool>,
    pub(crate) repeats: Arc<AtomicBool>,
    pub(crate) gate: Gate,
    pub(crate) last_step: LastStep,
}

impl Services {
    pub(crate) async fn start() -> Self {
        let (of_orders, of_payments) = (Commits::default(), Commits::default());
        let (fails, doubles, repeats, gate) = (Arc::default(), Arc::default(), Arc::default(), Gate::open());
        let inner = MemoryTransport::new();
        let (is_failing, is_doubling) = (Arc::clone(&fails), Arc::clone(&doubles));
        let transport = Failing { inner, fails: is_failing, doubles: is_doubling, repeats: Arc::clone(&repeats) };
        let store = |commits: &Commits| MemoryStore::new().with_commit_hook(Arc::new(commits.clone()));
        // Nobody looks for what nobody announced.
        let rare = |settings: &mut Settings| settings.poll_interval = Duration::from_secs(3);
        let charged = store(&of_payments);
        let service = Service::named("payments").host::<charge_card>().host::<send_receipt>().build().unwrap();
        let payments = Runtime::builder(charged.clone()).transport(transport.clone()).service(&service).settings(rare);
        let payments = payments.state(gate.clone()).start().await.unwrap();
        let saga = Saga::named("order").input::<u64>();
        let saga = saga.step::<reserve>().step::<contracts::charge_card>().step::<confirm>().build().unwrap();
        let parallel = Saga::named("receipt").input::<u64>().parallel(|group| {
            let group = group.branch(StepBuilder::step::<contracts::charge_card>);
            group.branch(StepBuilder::step::<contracts::send_receipt>)
        });
        let parallel = parallel.step::<confirm>().build().unwrap();
        let last_step = LastStep { next: Arc::default(), gate: Gate::open(), has_begun: watch::Sender::new(false) };
        let orders = Runtime::builder(store(&of_orders)).transport(transport.clone()).saga(&saga).saga(&parallel);
        let orders = orders.state(last_step.clone()).settings(move |settings| {
            rare(settings);
            settings.service = Some("orders".to_owned());
        });
        let orders = orders.start().await.unwrap();
        Self {
            saga,
            parallel,
            orders,
            payments,
            transport,
            of_orders,
            of_payments,
            charged,
            fails,
            doubles,
            repeats,
            gate,
            last_step,
        }
    }

    /// The same, when the steps and the clocks are known.
    pub(crate) async fn known() -> Self {
        let services = Self::start().await;
        services.order("first").await;
        services.order("second").await;
        services
    }

    pub(crate) fn charged(&self) -> i64 {
        self.charged.read(|table| table.counter("charged"))
    }

    pub(crate) fn confirmed(&self) -> i64 {
        self.orders.store().read(|table| table.counter("confirmed"))
    }

    pub(crate) async fn order(&self, key: &str) {
        let outcome = self.outcome(key).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    }

    pub(crate) async fn outcome(&self, key: &str) -> Outcome {
        self.orders.start(&self.saga, key, 7).await.unwrap().outcome().await.unwrap()
    }
}
