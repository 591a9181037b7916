//! The services: each step writes what it does into its store's table, under the key of its saga.

use std::time::Duration;

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Event, Output, Service, StepContext, StepError, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

macro_rules! events {
    ($($name:literal $event:ident)*) => {$(
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub(crate) struct $event(pub(crate) i64);

        impl Event for $event {
            const NAME: &'static str = $name;
        }
    )*};
}

// The number is what is wanted; above this it is too much.
events! {
    "order-placed" OrderPlaced
    "stock-reserved" StockReserved
    "stock-rejected" StockRejected
    "card-charged" CardCharged
    "card-declined" CardDeclined
    "order-shipped" OrderShipped
    "order-expired" OrderExpired
}

/// More than there is in stock.
pub(crate) const STOCK_MAX: i64 = 10;
/// More than a card gives: above what the stock has, so that an order is refused by one of them.
pub(crate) const CARD_MIN: i64 = 0;

fn write(tx: &mut MemoryConn, what: &str, ctx: &StepContext) -> Result<i64, StepError> {
    Ok(tx.add(&format!("{what} {}", ctx.saga_key()), 1)?)
}

#[saga_step(compensate = unreserve)]
async fn reserve(tx: &mut MemoryConn, ctx: &StepContext, order: OrderPlaced) -> Result<StockReserved, StepError> {
    if order.0 > STOCK_MAX {
        return Err(StepError::reject("sold out"));
    }
    write(tx, "reserve", ctx)?;
    Ok(StockReserved(order.0))
}

#[saga_compensation]
async fn unreserve(
    tx: &mut MemoryConn,
    ctx: &StepContext,
    _order: OrderPlaced,
    stock: StockReserved,
) -> Result<(), StepError> {
    assert!(stock.0 <= STOCK_MAX, "what was returned comes back");
    write(tx, "unreserve", ctx).map(drop)
}

#[saga_step(compensate = refund)]
async fn charge(tx: &mut MemoryConn, ctx: &StepContext, amount: i64) -> Result<CardCharged, StepError> {
    if amount < CARD_MIN {
        return Err(StepError::reject("declined"));
    }
    write(tx, "charge", ctx)?;
    Ok(CardCharged(amount))
}

#[saga_compensation]
async fn refund(tx: &mut MemoryConn, ctx: &StepContext, _amount: i64) -> Result<(), StepError> {
    write(tx, "refund", ctx).map(drop)
}

#[saga_step(compensate = unpack)]
async fn pack(tx: &mut MemoryConn, ctx: &StepContext, stock: StockReserved) -> Result<i64, StepError> {
    write(tx, "pack", ctx)?;
    Ok(stock.0)
}

#[saga_compensation]
async fn unpack(tx: &mut MemoryConn, ctx: &StepContext, _stock: StockReserved) -> Result<(), StepError> {
    write(tx, "unpack", ctx).map(drop)
}

#[saga_step(no_compensation)]
async fn ship(
    tx: &mut MemoryConn,
    ctx: &StepContext,
    _charged: CardCharged,
    Output(_packed): Output<pack>,
) -> Result<(), StepError> {
    write(tx, "ship", ctx).map(drop)
}

/// All services, in the order of their numbers. With a mistake, the payments do not hear of what undoes them.
pub(crate) fn services(deadline: Duration, ignores_undos: bool) -> [Service<MemoryStore>; 3] {
    let stock = Service::named("stock")
        .reports_to("shipping")
        .on::<OrderPlaced>()
        .run::<reserve>()
        .emits_output()
        .emits_on_reject::<StockRejected>(|order, _| StockRejected(order.0))
        .on::<CardDeclined>()
        .undo::<reserve>()
        .on::<OrderExpired>()
        .undo::<reserve>();
    let payments = Service::named("payments")
        .reports_to("shipping")
        .on::<OrderPlaced>()
        .run_with::<charge>(|order| order.0)
        .emits_output()
        .emits_on_reject::<CardDeclined>(|amount, _| CardDeclined(*amount))
        .on::<OrderExpired>()
        .undo::<charge>();
    let payments = if ignores_undos { payments } else { payments.on::<StockRejected>().undo::<charge>() };
    let shipping = Service::named("shipping")
        .reports_to("shipping")
        .on::<StockReserved>()
        .run::<pack>()
        .on::<CardCharged>()
        .run::<ship>()
        .emits::<OrderShipped>(|charged, ()| OrderShipped(charged.0))
        .on::<OrderPlaced>()
        .deadline::<ship, OrderExpired>(deadline, |order| OrderExpired(order.0))
        .on::<StockRejected>()
        .undo::<pack>()
        .on::<StockRejected>()
        .tombstone::<ship>()
        .on::<CardDeclined>()
        .undo::<pack>()
        .on::<CardDeclined>()
        .tombstone::<ship>()
        .on::<OrderExpired>()
        .undo::<pack>()
        .on::<OrderPlaced>()
        .mark_begun()
        .on::<OrderShipped>()
        .mark_completed()
        .on::<OrderExpired>()
        .mark_compensated();
    [stock.build().unwrap(), payments.build().unwrap(), shipping.build().unwrap()]
}
