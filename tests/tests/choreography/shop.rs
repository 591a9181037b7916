//! Stock, payments and shipping: three services that know each other's events only.

use std::collections::BTreeMap;
use std::time::Duration;

use saga_core::engine::TimelineStatus;
use saga_core::engine::{Became, Happened};
use saga_core::store::{DeadLetter, DeadLetterFilter, Headers, MessageId, MessageKind, Timestamp};
use saga_core::transport::Message;
use saga_core::{Event, Runtime, Service, Settings, Tenant};
use saga_tests::{Books, Kept, eventually};
use uuid::Uuid;

use super::events::{
    CardCharged, CardDeclined, NoteAdded, OrderExpired, OrderPlaced, OrderShipped, StockRejected, StockReleased,
    StockReserved,
};
use super::meddler::{Meddler, Meddling};
use super::steps::{Charge, charge_card, note_each, pack, reserve_stock, ship, weigh};

/// A deadline that no case comes to by itself.
pub(crate) const NEVER: Duration = Duration::from_hours(48);

/// The three services.
pub(crate) struct Shop<S: Books> {
    pub(crate) transport: Meddler,
    pub(crate) stock: S,
    pub(crate) payments: S,
    pub(crate) shipping: S,
    /// The first replica of each.
    pub(crate) stock_runtime: Runtime<S>,
    pub(crate) payments_runtime: Runtime<S>,
    pub(crate) shipping_runtime: Runtime<S>,
    other_stocks: Vec<Runtime<S>>,
    others: Vec<Runtime<S>>,
    // Dropped last: what the stores and the transport lie in.
    _kept: Vec<Kept>,
}

pub(crate) fn stock<S: Books>() -> Service<S> {
    Service::named("stock")
        .reports_to("shipping")
        .on::<OrderPlaced>()
        .run_with::<reserve_stock>(|order| order.quantity)
        .emits::<StockReserved>(|quantity, _| StockReserved { quantity: *quantity })
        .emits_on_reject::<StockRejected>(|_, reason| StockRejected { reason: reason.message().to_owned() })
        .emits_on_undo::<StockReleased>(|quantity| StockReleased { quantity: *quantity })
        .on::<CardDeclined>()
        .undo::<reserve_stock>()
        .on::<OrderExpired>()
        .undo::<reserve_stock>()
        .build()
        .unwrap()
}

pub(crate) fn payments<S: Books>() -> Service<S> {
    Service::named("payments")
        .reports_to("shipping")
        .on::<OrderPlaced>()
        .run_with::<charge_card>(|order| {
            assert!(order.cents > 0, "an order costs something");
            Charge { cents: order.cents }
        })
        .emits_output()
        .emits_on_reject::<CardDeclined>(|charge, reason| {
            assert!(charge.cents != 6_666, "a number that nobody can tell");
            CardDeclined { reason: reason.message().to_owned() }
        })
        .on::<StockRejected>()
        .undo::<charge_card>()
        .on::<OrderExpired>()
        .undo::<charge_card>()
        .on::<NoteAdded>()
        .run_per_event_with::<note_each>(|note| note.cents)
        .build()
        .unwrap()
}

pub(crate) fn shipping<S: Books>(deadline: Duration) -> Service<S> {
    Service::named("shipping")
        .reports_to("shipping")
        .on::<OrderPlaced>()
        .mark_begun()
        .on::<OrderShipped>()
        .mark_completed()
        .on::<StockRejected>()
        .mark_compensated()
        .on::<CardDeclined>()
        .mark_compensated()
        .on::<OrderExpired>()
        .mark_compensated()
        .on::<StockReserved>()
        .run::<pack>()
        .on::<StockReleased>()
        .undo::<pack>()
        .on::<StockRejected>()
        .undo::<pack>()
        .on::<CardDeclined>()
        .tombstone::<ship>()
        .on::<CardCharged>()
        .run::<ship>()
        .reads::<weigh>()
        .emits::<OrderShipped>(|_, parcel| OrderShipped { parcel: *parcel })
        .on_topic::<OrderPlaced>("scales")
        .run_with::<weigh>(|order| order.quantity)
        .on::<OrderPlaced>()
        .deadline::<ship, OrderExpired>(deadline, |_| OrderExpired {})
        .build()
        .unwrap()
}

async fn replica<S: Books>(store: &S, transport: &Meddler, service: &Service<S>) -> Runtime<S> {
    Runtime::builder(store.clone())
        .transport(transport.clone())
        .service(service)
        .settings(|settings: &mut Settings| settings.message_attempts = 3)
        .start()
        .await
        .unwrap()
}

/// As many replicas of a service as its store takes.
async fn replicas<S: Books>(store: &S, transport: &Meddler, service: Service<S>) -> Vec<Runtime<S>> {
    let mut all = Vec::new();
    for _ in 0..S::REPLICAS {
        all.push(replica(store, transport, &service).await);
    }
    all
}

impl<S: Books> Shop<S> {
    pub(crate) async fn open(meddling: Meddling) -> Self {
        Self::open_until(meddling, NEVER).await
    }

    pub(crate) async fn open_until(meddling: Meddling, deadline: Duration) -> Self {
        let (carrier, kept_carrier) = S::carrier().await;
        let transport = Meddler::new(carrier, meddling);
        let ((in_stock, a), (in_payments, b), (in_shipping, c)) =
            (S::fresh().await, S::fresh().await, S::fresh().await);
        let mut stocks = replicas(&in_stock, &transport, stock()).await;
        let mut payers = replicas(&in_payments, &transport, payments()).await;
        let mut shippers = replicas(&in_shipping, &transport, shipping(deadline)).await;
        let (stock_runtime, payments_runtime) = (stocks.remove(0), payers.remove(0));
        let shipping_runtime = shippers.remove(0);
        let others = payers.into_iter().chain(shippers).collect();
        Self {
            transport,
            stock: in_stock,
            payments: in_payments,
            shipping: in_shipping,
            stock_runtime,
            payments_runtime,
            shipping_runtime,
            other_stocks: stocks,
            others,
            _kept: vec![kept_carrier, a, b, c],
        }
    }

    /// Ends every replica, so that nobody looks for a database that is about to be dropped.
    pub(crate) async fn close(self) {
        let firsts = [&self.stock_runtime, &self.payments_runtime, &self.shipping_runtime];
        for runtime in firsts.into_iter().chain(&self.other_stocks).chain(&self.others) {
            runtime.shutdown().await;
        }
    }

    /// Ends the replicas of the stock: nobody hears what is for it.
    pub(crate) async fn stop_stock(&self) {
        for runtime in [&self.stock_runtime].into_iter().chain(&self.other_stocks) {
            runtime.shutdown().await;
        }
    }

    /// Begins them again.
    pub(crate) async fn start_stock(&mut self) {
        self.other_stocks = replicas(&self.stock, &self.transport, stock()).await;
        self.stock_runtime = self.other_stocks.remove(0);
    }

    /// An order is placed, as an application would.
    pub(crate) async fn place(&self, key: &str, cents: i64, quantity: i64) {
        self.stock_runtime.publish(key, &OrderPlaced { cents, quantity }).await.unwrap();
    }

    /// Somebody else publishes a message.
    pub(crate) async fn publish(&self, message: Message) {
        self.transport.inner.publish(vec![message]).await.remove(0).unwrap();
    }

    /// Waits until a counter has this value.
    pub(crate) async fn comes_to(&self, store: &S, counter: &str, value: i64) {
        eventually(counter, async || (store.counter(counter).await == value).then_some(())).await;
    }

    /// Waits until a service has nothing left to do or to send, and the others nothing that it could get.
    pub(crate) async fn is_quiet(&self) {
        self.is_quiet_but_for(0).await;
    }

    /// The same, while shipping keeps so many deadlines.
    pub(crate) async fn is_quiet_but_for(&self, deadlines: u64) {
        eventually("quiet", async || {
            for (store, waiting) in [(&self.stock, 0), (&self.payments, 0), (&self.shipping, deadlines)] {
                if store.depth().await.unwrap().rows > 0 || store.backlog().await.unwrap().0 > waiting {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }

    /// The timeline of a saga, once it is as expected.
    pub(crate) async fn timeline(&self, key: &str, expect: impl Fn(&TimelineStatus) -> bool) -> TimelineStatus {
        let inspector = self.shipping_runtime.admin().query();
        let look = async || inspector.timeline(key).await.unwrap().filter(&expect);
        eventually("the timeline", look).await
    }

    /// The open letters of a service, once there are so many.
    pub(crate) async fn letters(&self, runtime: &Runtime<S>, count: usize) -> Vec<DeadLetter> {
        let desk = runtime.admin().dead_letters();
        eventually("letters", async || {
            Some(desk.list(DeadLetterFilter::default()).await.unwrap()).filter(|letters| letters.len() >= count)
        })
        .await
    }
}

/// The steps of a timeline, each with the last thing that became of it.
pub(crate) fn last_of(timeline: &TimelineStatus) -> BTreeMap<String, Became> {
    let steps = timeline.entries.iter().filter_map(|entry| match &entry.what {
        Happened::Step { step, became, .. } => Some((step.clone(), *became)),
        _ => None,
    });
    steps.collect()
}

/// An event as somebody else publishes it, who follows the conventions.
pub(crate) fn event<E: Event>(number: u128, key: &str, event: &E) -> Message {
    raw(number, key, E::NAME, &serde_json::to_string(event).unwrap())
}

/// The same with any content.
pub(crate) fn raw(number: u128, key: &str, name: &str, payload: &str) -> Message {
    Message {
        id: MessageId(Uuid::from_u128(number)),
        kind: MessageKind::Event,
        tenant: Tenant::default(),
        topic: name.into(),
        key: key.into(),
        event_type: name.into(),
        payload: payload.into(),
        // However far the clocks of two services are apart, what comes from the future is young.
        committed_at: Timestamp(i64::MAX),
        headers: Headers::default(),
    }
}
