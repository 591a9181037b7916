//! Orders, payments and shipping: three services, each with its own store.

use std::time::Duration;

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::{DeadLetter, LetterFilter, Outbox, Work};
use saga_core::transport::{Incoming, Message, Settlement, Subscription, Transport, service_topic};
use saga_core::{
    Output, Running, Runtime, Saga, Service, Settings, StepContext, StepError, Tenant, saga_compensation, saga_step,
};
use serde::{Deserialize, Serialize};

use super::meddler::{Meddler, Meddling};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) cents: i64,
    pub(crate) heavy: bool,
}

/// What the services know of each other.
mod contracts {
    use saga_core::{StepError, saga_step};

    use super::Order;

    #[saga_step(service = "payments", compensated)]
    pub(crate) async fn charge_card(order: Order) -> Result<String, StepError>;

    #[saga_step(service = "shipping", compensated)]
    pub(crate) async fn ship_order(order: Order) -> Result<i64, StepError>;
}

#[saga_step(implements = contracts::charge_card, compensate = refund_card)]
async fn charge_card(tx: &mut MemoryConn, ctx: &StepContext, order: Order) -> Result<String, StepError> {
    if order.cents > 1_000 {
        return Err(StepError::reject("too expensive"));
    }
    tx.put(&format!("key/{}", ctx.key()), "charged")?;
    tx.add("charges", 1)?;
    tx.add("charged", order.cents)?;
    Ok(format!("payment of {}", order.cents))
}

#[saga_compensation]
async fn refund_card(tx: &mut MemoryConn, order: Order, payment: Option<String>) -> Result<(), StepError> {
    if tx.counter("broken") > 0 {
        return Err(StepError::reject("the ledger is closed"));
    }
    tx.add("refunds", 1)?;
    tx.add("charged", -order.cents)?;
    assert_eq!(payment, Some(format!("payment of {}", order.cents)), "what was returned comes back");
    Ok(())
}

#[saga_step(implements = contracts::ship_order, compensate = unship_order)]
async fn ship_order(order: Order) -> Result<i64, StepError> {
    if order.heavy { Err(StepError::reject("too heavy")) } else { Ok(7) }
}

#[saga_compensation]
async fn unship_order(_order: Order) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation)]
async fn note_order(
    tx: &mut MemoryConn,
    ctx: &StepContext,
    _order: Order,
    Output(parcel): Output<contracts::ship_order>,
) -> Result<(), StepError> {
    assert_eq!(parcel, 7);
    tx.put(ctx.saga_key(), "paid and shipped")?;
    tx.add("shipped", 1)?;
    Ok(())
}

fn create_order() -> Saga<MemoryStore, Order> {
    Saga::named("create-order")
        .input::<Order>()
        .step::<contracts::charge_card>()
        .step::<contracts::ship_order>()
        .step::<note_order>()
        .build()
        .unwrap()
}

/// The three services.
pub(crate) struct Shop {
    pub(crate) transport: Meddler,
    pub(crate) orders: MemoryStore,
    pub(crate) payments: MemoryStore,
    pub(crate) shipping: MemoryStore,
    pub(crate) orders_runtime: Runtime<MemoryStore>,
    pub(crate) payments_runtime: Runtime<MemoryStore>,
    _shipping_runtime: Runtime<MemoryStore>,
}

/// What a service that is none of the three gets.
pub(crate) struct Replies {
    incoming: Box<dyn Incoming>,
}

fn tune(settings: &mut Settings) {
    settings.answer_within = Duration::from_secs(1);
    settings.tenants = Some(vec![Tenant::default()]);
}

async fn payments(store: &MemoryStore, transport: &Meddler) -> Runtime<MemoryStore> {
    let service = Service::named("payments").host::<charge_card>().build().unwrap();
    Runtime::builder(store.clone()).transport(transport.clone()).service(&service).settings(tune).start().await.unwrap()
}

impl Shop {
    pub(crate) async fn open(meddling: Meddling) -> Self {
        Self::open_without_payments(meddling).await.with_payments().await
    }

    /// What is addressed to the payments arrives at a process that does not know their step.
    pub(crate) async fn open_without_payments(meddling: Meddling) -> Self {
        let transport = Meddler::new(meddling);
        let (orders, payments, shipping) = (MemoryStore::new(), MemoryStore::new(), MemoryStore::new());
        let ships = Service::named("shipping").host::<ship_order>().build().unwrap();
        let shipping_runtime = Runtime::builder(shipping.clone())
            .transport(transport.clone())
            .service(&ships)
            .settings(tune)
            .start()
            .await
            .unwrap();
        let named = |name: &'static str| {
            move |settings: &mut Settings| {
                tune(settings);
                settings.service = Some(name.into());
            }
        };
        let orders_runtime = Runtime::builder(orders.clone())
            .transport(transport.clone())
            .saga(&create_order())
            .settings(named("orders"))
            .start()
            .await
            .unwrap();
        let payments_runtime = Runtime::builder(payments.clone())
            .transport(transport.clone())
            .settings(named("payments"))
            .start()
            .await
            .unwrap();
        Self {
            transport,
            orders,
            payments,
            shipping,
            orders_runtime,
            payments_runtime,
            _shipping_runtime: shipping_runtime,
        }
    }

    /// The next version of the payments begins, and the present one ends.
    pub(crate) async fn with_payments(self) -> Self {
        self.payments_runtime.shutdown().await;
        let payments_runtime = payments(&self.payments, &self.transport).await;
        Self { payments_runtime, ..self }
    }

    pub(crate) async fn order(&self, key: &str, order: Order) -> Running<MemoryStore> {
        self.orders_runtime.start(&create_order(), key, order).await.unwrap()
    }

    pub(crate) async fn publish(&self, message: Message) {
        self.transport.inner.publish(vec![message]).await.remove(0).unwrap();
    }

    pub(crate) async fn listen(&self, service: &str) -> Replies {
        let topic = service_topic(service);
        let subscription = Subscription { name: topic.clone(), topics: vec![topic], prefetch: 10 };
        Replies { incoming: self.transport.inner.subscribe(subscription).await.unwrap() }
    }

    pub(crate) fn charged(&self) -> i64 {
        self.payments.read(|table| table.counter("charged"))
    }

    pub(crate) fn shipped(&self) -> i64 {
        self.orders.read(|table| table.counter("shipped"))
    }

    pub(crate) fn break_refunds(&self, broken: bool) {
        let mut transaction = self.payments.transaction();
        transaction.conn().put("broken", i64::from(broken).to_be_bytes()).unwrap();
        transaction.commit().unwrap();
    }

    /// The open letters of the payments, once the newest of them was seen that often.
    pub(crate) async fn letters(&self, tenant: &Tenant, seen: u64) -> Vec<DeadLetter> {
        let desk = self.payments_runtime.tenant(tenant.clone()).dead_letters();
        let has_come = |letters: &Vec<DeadLetter>| letters.last().is_some_and(|letter| letter.seen >= seen);
        self.wait_for(async || Some(desk.list(LetterFilter::default()).await.unwrap()).filter(has_come)).await
    }

    /// Waits until nothing is left to do, to send or to wait for.
    pub(crate) async fn is_quiet(&self) {
        self.wait_for(async || {
            for store in [&self.orders, &self.payments, &self.shipping] {
                if store.depth().await.unwrap().rows + store.backlog().await.unwrap().0 > 0 {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }

    /// Asks until there is an answer. The clock is the test's: it goes on only when nobody has anything to do.
    pub(crate) async fn wait_for<T>(&self, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        let asking = async {
            loop {
                if let Some(answer) = ask().await {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(10), asking).await.unwrap()
    }
}

impl Replies {
    pub(crate) async fn next(&mut self) -> Message {
        let delivery = self.incoming.receive(1).await.unwrap().remove(0);
        self.incoming.settle(&[(delivery.tag, Settlement::Accept)]).await.unwrap();
        delivery.message.unwrap()
    }
}
