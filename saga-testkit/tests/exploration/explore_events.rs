//! Services that are wired by events, explored: every order of arrivals, every event once more, a crash at each boundary.
//! Mistakes in the wiring that only show in some orders, or with a duplicate, are found.

use std::sync::Arc;

use async_trait::async_trait;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::Store;
use saga_core::{Event, Service, StepError, saga_compensation, saga_step};
use saga_testkit::VirtualTime;
use saga_testkit::explore::{EventFailures, EventsExplored, ExploreEvents, Explored, FirstEvent, explore_events};
use serde::{Deserialize, Serialize};

macro_rules! events {
    ($($name:literal $event:ident)*) => {$(
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        struct $event(i64);

        impl Event for $event {
            const NAME: &'static str = $name;
        }
    )*};
}

events! {
    "order-placed" OrderPlaced
    "stock-reserved" StockReserved
    "stock-rejected" StockRejected
    "card-charged" CardCharged
    "card-declined" CardDeclined
}

/// More than there is in stock, and less than a card takes.
const SOLD_OUT: i64 = 11;
const DECLINED: i64 = 0;

#[saga_step(compensate = unreserve)]
async fn reserve(tx: &mut MemoryConn, order: OrderPlaced) -> Result<StockReserved, StepError> {
    if order.0 == SOLD_OUT {
        return Err(StepError::reject("sold out"));
    }
    tx.add("reserved", order.0)?;
    Ok(StockReserved(order.0))
}

#[saga_compensation]
async fn unreserve(tx: &mut MemoryConn, _order: OrderPlaced, reserved: StockReserved) -> Result<(), StepError> {
    Ok(tx.add("reserved", -reserved.0).map(drop)?)
}

#[saga_step(compensate = refund)]
async fn charge(tx: &mut MemoryConn, order: OrderPlaced) -> Result<CardCharged, StepError> {
    if order.0 == DECLINED {
        return Err(StepError::reject("declined"));
    }
    tx.add("charged", order.0)?;
    Ok(CardCharged(order.0))
}

#[saga_compensation]
async fn refund(tx: &mut MemoryConn, _order: OrderPlaced, charged: CardCharged) -> Result<(), StepError> {
    Ok(tx.add("charged", -charged.0).map(drop)?)
}

/// What somebody writes who does not know that an undo can do this: it gives back what was charged so far.
#[saga_step(no_compensation)]
async fn give_back(tx: &mut MemoryConn, _rejected: StockRejected) -> Result<(), StepError> {
    let charged = tx.add("charged", 0)?;
    Ok(tx.add("charged", -charged).map(drop)?)
}

fn stock<S: Store<Conn = MemoryConn>>() -> Service<S> {
    let stock = Service::named("stock").reports_to("stock").on::<OrderPlaced>().run::<reserve>().emits_output();
    let stock = stock.emits_on_reject::<StockRejected>(|order, _| StockRejected(order.0));
    let stock = stock.on::<CardDeclined>().undo::<reserve>();
    stock.on::<OrderPlaced>().mark_begun().build().unwrap()
}

fn payments<S: Store<Conn = MemoryConn>>(mistake: Option<Mistake>) -> Service<S> {
    let payments = Service::named("payments").reports_to("stock").on::<OrderPlaced>();
    if mistake == Some(Mistake::ChargesEachEvent) {
        let payments = payments.run_per_event::<charge>().emits_output();
        return payments.emits_on_reject::<CardDeclined>(|order, _| CardDeclined(order.0)).build().unwrap();
    }
    let payments = payments.run::<charge>().emits_output();
    let payments = payments.emits_on_reject::<CardDeclined>(|order, _| CardDeclined(order.0)).on::<StockRejected>();
    match mistake {
        Some(Mistake::GivesBackByHand) => payments.run::<give_back>().build().unwrap(),
        _ => payments.undo::<charge>().build().unwrap(),
    }
}

/// A mistake in the wiring that is made on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// What comes too early to be given back is not barred either.
    GivesBackByHand,
    /// A second event charges a second time.
    ChargesEachEvent,
}

/// An order of that many.
struct Orders {
    wanted: i64,
    mistake: Option<Mistake>,
}

#[async_trait]
impl ExploreEvents for Orders {
    type Store = MemoryStore;
    type World = [Arc<MemoryStore>; 2];

    fn services(&self) -> Vec<Service<Explored<MemoryStore>>> {
        vec![stock(), payments(self.mistake)]
    }

    fn told(&self) -> Vec<FirstEvent> {
        vec![FirstEvent::of(&OrderPlaced(self.wanted))]
    }

    async fn fresh(&self, time: &VirtualTime) -> [Arc<MemoryStore>; 2] {
        [
            Arc::new(MemoryStore::with_environment(time.environment())),
            Arc::new(MemoryStore::with_environment(time.environment())),
        ]
    }

    fn store(&self, world: &[Arc<MemoryStore>; 2], service: &str) -> Arc<MemoryStore> {
        Arc::clone(&world[usize::from(service == "payments")])
    }

    async fn audit(&self, world: &[Arc<MemoryStore>; 2]) -> Result<(), String> {
        let reserved = world[0].read(|table| table.counter("reserved"));
        let charged = world[1].read(|table| table.counter("charged"));
        let expected = if [SOLD_OUT, DECLINED].contains(&self.wanted) { 0 } else { self.wanted };
        if (reserved, charged) == (expected, expected) {
            return Ok(());
        }
        Err(format!("of {expected} there are {reserved} reserved and {charged} charged"))
    }
}

async fn explored(wanted: i64, mistake: Option<Mistake>) -> Result<EventsExplored, EventFailures> {
    explore_events(Orders { wanted, mistake }).await
}

/// G5: whatever comes first, comes twice or crashes, both did what they do or nothing of it stands.
#[tokio::test(flavor = "multi_thread")]
async fn g5_in_every_order_all_of_it_is_done_or_nothing_stands() {
    // The order goes to both. Where one of them refuses it, its word comes before the other's order, behind it, or last.
    for (wanted, orders) in [(7, 2), (SOLD_OUT, 3), (DECLINED, 3)] {
        let explored = explored(wanted, None).await.unwrap_or_else(|failures| panic!("{wanted}: {failures}"));
        println!("{wanted}: {explored}");
        assert_eq!((explored.orders(), explored.left_out()), (orders, 0), "{explored}");
        assert!(explored.doubled() > explored.orders() && explored.crashes() > 10, "{explored}");
        assert_eq!(explored.runs(), explored.orders() + explored.doubled() + explored.crashes());
        let crashed = |what: &str| explored.boundaries().iter().any(|boundary| boundary.contains(what));
        assert!(crashed("stock: behind stock-rejected is told") == (wanted == SOLD_OUT), "{:?}", explored.boundaries());
        assert!(crashed("payments: before the transaction of charge"), "{:?}", explored.boundaries());
    }
}

/// It is right as long as the order comes before what takes it back.
#[tokio::test(flavor = "multi_thread")]
async fn an_undo_that_comes_before_its_do_and_bars_nothing_is_found() {
    let failures = explored(SOLD_OUT, Some(Mistake::GivesBackByHand)).await.unwrap_err();
    let early = "order-placed to service:stock, stock-rejected to service:payments, order-placed to service:payments";
    let found = failures.broken.iter().any(|broken| {
        broken.disturbance.contains(early) && broken.problem == "the audit: of 0 there are 0 reserved and 11 charged"
    });
    assert!(found, "{failures}");
    let late = "order-placed to service:stock, order-placed to service:payments, stock-rejected to service:payments";
    assert!(failures.broken.iter().all(|broken| broken.disturbance != late), "{failures}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_done_for_each_of_two_events_is_found() {
    let failures = explored(7, Some(Mistake::ChargesEachEvent)).await.unwrap_err();
    let is_double = |problem: &str| problem == "the audit: of 7 there are 7 reserved and 14 charged";
    assert!(failures.broken.iter().any(|broken| is_double(&broken.problem)), "{failures}");
    let is_of_copy = |disturbance: &str| disturbance.contains("order-placed to service:payments, once more");
    assert!(failures.broken.iter().all(|broken| is_of_copy(&broken.disturbance)), "{failures}");
}
