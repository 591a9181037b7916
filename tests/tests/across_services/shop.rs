//! Orders, payments and shipping: three services, each with its own store.

use std::time::Duration;

use saga_core::store::{DeadLetter, DeadLetterFilter};
use saga_core::transport::{Incoming, Message, Settlement, Subscription, service_topic};
use saga_core::{
    Entity, Locked, Output, Outputs, Runtime, Saga, SagaHandle, SemanticLock, Service, Settings, StepContext,
    StepError, Tenant, saga_compensation, saga_step,
};
use saga_tests::{Books, Kept, eventually};
use serde::{Deserialize, Serialize};

use super::meddler::{Meddler, Meddling};
use super::within::subscription;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) cents: i64,
    pub(crate) heavy: bool,
}

/// What the services know of each other.
pub(crate) mod contracts {
    use saga_core::{StepError, saga_step};

    use super::Order;

    #[saga_step(service = "payments", compensated)]
    pub(crate) async fn charge_card(order: Order) -> Result<String, StepError>;

    #[saga_step(service = "shipping", compensated)]
    pub(crate) async fn ship_order(order: Order) -> Result<i64, StepError>;
}

#[saga_step(implements = contracts::charge_card, compensate = refund_card)]
async fn charge_card<S: Books>(tx: &mut S::Conn, ctx: &StepContext, order: Order) -> Result<String, StepError> {
    if order.cents > 1_000 {
        return Err(StepError::reject("too expensive"));
    }
    S::add(tx, ctx.key(), 1).await?;
    S::add(tx, "charges", 1).await?;
    S::add(tx, "charged", order.cents).await?;
    Ok(format!("payment of {}", order.cents))
}

#[saga_compensation]
async fn refund_card<S: Books>(tx: &mut S::Conn, order: Order, payment: Option<String>) -> Result<(), StepError> {
    if S::add(tx, "broken", 0).await? > 0 {
        return Err(StepError::reject("the ledger is closed"));
    }
    S::add(tx, "refunds", 1).await?;
    S::add(tx, "charged", -order.cents).await?;
    assert_eq!(payment, Some(format!("payment of {}", order.cents)), "what was returned comes back");
    Ok(())
}

#[saga_step(implements = contracts::ship_order, compensate = unship_order)]
async fn ship_order(order: Order, depot: Option<Locked<Depot>>) -> Result<i64, StepError> {
    let token = depot.map_or(7, |depot| depot.entities()[0].token.cast_signed());
    if order.heavy { Err(StepError::reject("too heavy")) } else { Ok(token) }
}

#[saga_compensation]
async fn unship_order(_order: Order) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation)]
async fn note_order<S: Books>(
    tx: &mut S::Conn,
    ctx: &StepContext,
    _order: Order,
    Output(parcel): Output<contracts::ship_order>,
) -> Result<(), StepError> {
    assert_eq!(parcel, 7);
    S::add(tx, ctx.saga_key(), 1).await?;
    S::add(tx, "shipped", 1).await?;
    Ok(())
}

/// A semantic lock that another service is told of.
struct Depot;

impl SemanticLock for Depot {
    const NAME: &'static str = "depot";
}

#[saga_step(no_compensation)]
async fn note_locked<S: Books>(
    tx: &mut S::Conn,
    _order: Order,
    depot: Locked<Depot>,
    Output(token): Output<contracts::ship_order>,
) -> Result<(), StepError> {
    assert_eq!(depot.entities()[0].token.cast_signed(), token, "the host had another token");
    S::add(tx, "shipped", 1).await?;
    Ok(())
}

#[saga_step(no_compensation)]
async fn note_payments<S: Books>(
    tx: &mut S::Conn,
    orders: Vec<Order>,
    Outputs(payments): Outputs<contracts::charge_card>,
) -> Result<(), StepError> {
    let expected: Vec<String> = orders.iter().map(|order| format!("payment of {}", order.cents)).collect();
    assert_eq!(payments, expected, "what the items gave is joined in the order of the list");
    S::add(tx, "paid", 1).await?;
    Ok(())
}

fn create_order<S: Books>() -> Saga<S, Order> {
    Saga::named("create-order")
        .input::<Order>()
        // What the payments need not know they are not told.
        .step_from::<contracts::charge_card, _>(|order: &Order| Order { heavy: false, ..order.clone() })
        .step::<contracts::ship_order>()
        .step::<note_order>()
        .build()
        .unwrap()
}

/// One at a time, all over the depot.
pub(crate) fn under_lock<S: Books>() -> Saga<S, Order> {
    Saga::named("ship-under-lock")
        .input::<Order>()
        .semantic_lock::<Depot, _>(|_order: &Order| Entity::new("depot", 1))
        .step::<contracts::ship_order>()
        .step::<note_locked>()
        .build()
        .unwrap()
}

/// Charges for each of its orders, so many at once, and adds up what was paid.
fn charge_orders<S: Books>(name: &str, at_once: usize) -> Saga<S, Vec<Order>> {
    Saga::named(name)
        .input::<Vec<Order>>()
        .for_each::<contracts::charge_card, _>(at_once, Vec::clone)
        .step::<note_payments>()
        .build()
        .unwrap()
}

/// The same, one after the other.
pub(crate) fn one_by_one<S: Books>() -> Saga<S, Vec<Order>> {
    charge_orders("charge-one-by-one", 1)
}

pub(crate) fn three_at_once<S: Books>() -> Saga<S, Vec<Order>> {
    charge_orders("charge-orders", 3)
}

/// The three services.
pub(crate) struct Shop<S: Books> {
    pub(crate) transport: Meddler,
    pub(crate) orders: S,
    pub(crate) payments: S,
    pub(crate) orders_runtime: Runtime<S>,
    pub(crate) payments_runtime: Runtime<S>,
    shipping: S,
    /// The second replica of each service, and those of shipping.
    others: Vec<Runtime<S>>,
    other_payments: Vec<Runtime<S>>,
    settings: Change,
    // Dropped last: what the stores and the transport lie in.
    _kept: Vec<Kept>,
}

/// What a case wants of the settings.
type Change = fn(&mut Settings);

/// What a service that is none of the three gets.
pub(crate) struct Replies {
    incoming: Box<dyn Incoming>,
}

/// What a replica hosts, if anything, under which name.
async fn replica<S: Books>(
    store: &S,
    transport: &Meddler,
    name: &'static str,
    hosts: Option<Service<S>>,
    settings: Change,
) -> Runtime<S> {
    let mut builder =
        Runtime::builder(store.clone()).transport(transport.clone()).settings(|settings: &mut Settings| {
            settings.reply_timeout = Duration::from_secs(1);
            settings.tenants = Some(vec![Tenant::default()]);
            settings.service = Some(name.into());
        });
    builder = builder.settings(settings);
    if name == "orders" {
        builder = builder.saga(&create_order()).saga(&subscription()).saga(&one_by_one()).saga(&three_at_once());
        builder = builder.saga(&under_lock());
    }
    if let Some(service) = &hosts {
        builder = builder.service(service);
    }
    builder.start().await.unwrap()
}

/// As many replicas of a service as its store takes.
async fn replicas<S: Books>(
    store: &S,
    transport: &Meddler,
    name: &'static str,
    hosts: impl Fn() -> Option<Service<S>>,
    settings: Change,
) -> Vec<Runtime<S>> {
    let mut all = Vec::new();
    for _ in 0..S::REPLICAS {
        all.push(replica(store, transport, name, hosts(), settings).await);
    }
    all
}

impl<S: Books> Shop<S> {
    pub(crate) async fn open(meddling: Meddling) -> Self {
        Self::open_without_payments(meddling).await.with_payments().await
    }

    /// What is addressed to the payments arrives at processes that do not know their step.
    pub(crate) async fn open_without_payments(meddling: Meddling) -> Self {
        Self::open_with(meddling, |_| {}).await
    }

    /// No command is sent again while a case lasts.
    pub(crate) async fn open_patient(meddling: Meddling) -> Self {
        let patient = |settings: &mut Settings| settings.reply_timeout = Duration::from_hours(1);
        Self::open_with(meddling, patient).await.with_payments().await
    }

    /// Hosts ask every other second which sagas are closed.
    pub(crate) async fn open_asking(meddling: Meddling) -> Self {
        let asking = |settings: &mut Settings| {
            settings.retention = Duration::from_secs(72);
            settings.closed_asked_after = Some(Duration::from_secs(2));
        };
        Self::open_with(meddling, asking).await.with_payments().await
    }

    async fn open_with(meddling: Meddling, settings: Change) -> Self {
        let (carrier, kept_carrier) = S::carrier().await;
        let transport = Meddler::new(carrier, meddling);
        let ((orders, a), (payments, b), (shipping, c)) = (S::fresh().await, S::fresh().await, S::fresh().await);
        let ships = || Some(Service::named("shipping").host::<ship_order>().build().unwrap());
        let mut others = replicas(&shipping, &transport, "shipping", ships, settings).await;
        let mut orders_runtimes = replicas(&orders, &transport, "orders", || None, settings).await;
        let mut other_payments = replicas(&payments, &transport, "payments", || None, settings).await;
        let (orders_runtime, payments_runtime) = (orders_runtimes.remove(0), other_payments.remove(0));
        others.extend(orders_runtimes);
        let kept = vec![kept_carrier, a, b, c];
        Self {
            transport,
            orders,
            payments,
            orders_runtime,
            payments_runtime,
            shipping,
            others,
            other_payments,
            settings,
            _kept: kept,
        }
    }

    /// The next version of the payments begins, and the present one ends.
    pub(crate) async fn with_payments(mut self) -> Self {
        for runtime in self.other_payments.drain(..).chain([self.payments_runtime.clone()]) {
            runtime.shutdown().await;
        }
        let pays = || Some(Service::named("payments").host::<charge_card>().build().unwrap());
        self.other_payments = replicas(&self.payments, &self.transport, "payments", pays, self.settings).await;
        self.payments_runtime = self.other_payments.remove(0);
        self
    }

    /// Ends every replica, so that nobody looks for a database that is about to be dropped.
    pub(crate) async fn close(self) {
        let all = self.others.iter().chain(&self.other_payments).chain([&self.orders_runtime, &self.payments_runtime]);
        for runtime in all {
            runtime.shutdown().await;
        }
        assert_eq!(self.transport.strange_undos(), [""; 0], "an undo brings what its command brought");
    }

    pub(crate) async fn order(&self, key: &str, order: Order) -> SagaHandle<S> {
        self.orders_runtime.start(&create_order(), key, order).await.unwrap()
    }

    /// Starts a saga that charges for orders of so many cents each.
    pub(crate) async fn charge(&self, saga: &Saga<S, Vec<Order>>, key: &str, cents: &[i64]) -> SagaHandle<S> {
        let orders = cents.iter().map(|cents| Order { cents: *cents, heavy: false }).collect();
        self.orders_runtime.start(saga, key, orders).await.unwrap()
    }

    pub(crate) async fn publish(&self, message: Message) {
        self.transport.inner.publish(vec![message]).await.remove(0).unwrap();
    }

    pub(crate) async fn listen(&self, service: &str) -> Replies {
        let topic = service_topic(service);
        let subscription = Subscription { name: topic.clone(), topics: vec![topic], prefetch: 10 };
        Replies { incoming: self.transport.inner.subscribe(subscription).await.unwrap() }
    }

    pub(crate) async fn charged(&self) -> i64 {
        self.payments.counter("charged").await
    }

    pub(crate) async fn charges(&self) -> i64 {
        self.payments.counter("charges").await
    }

    pub(crate) async fn refunds(&self) -> i64 {
        self.payments.counter("refunds").await
    }

    pub(crate) async fn shipped(&self) -> i64 {
        self.orders.counter("shipped").await
    }

    /// The open letters of the payments, once the newest of them was seen that often.
    pub(crate) async fn letters(&self, tenant: &Tenant, seen: u64) -> Vec<DeadLetter> {
        let desk = self.payments_runtime.tenant(tenant.clone()).admin().dead_letters();
        let has_come = |letters: &Vec<DeadLetter>| letters.last().is_some_and(|letter| letter.seen >= seen);
        eventually("the letters", async || Some(desk.list(DeadLetterFilter::default()).await.unwrap()).filter(has_come))
            .await
    }

    /// Waits until nothing is left to do, to send or to wait for.
    pub(crate) async fn is_quiet(&self) {
        eventually("quiet", async || {
            for store in [&self.orders, &self.payments, &self.shipping] {
                if store.depth().await.unwrap().rows + store.backlog().await.unwrap().0 > 0 {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }
}

impl Replies {
    pub(crate) async fn next(&mut self) -> Message {
        let delivery = self.incoming.receive(1).await.unwrap().remove(0);
        self.incoming.settle(&[(delivery.tag, Settlement::Accept)]).await.unwrap();
        delivery.message.unwrap()
    }
}
