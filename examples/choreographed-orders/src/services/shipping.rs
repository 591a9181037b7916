//! The shipping service, which also follows every order: the other services report their steps to it.

use std::time::Duration;

use saga_core::service::ServiceError;
use saga_core::{Output, Service, StepContext, StepError, saga_compensation, saga_step};

use crate::books::Books;
use crate::events::{CardCharged, CardDeclined, OrderExpired, OrderPlaced, OrderShipped, StockRejected, StockReserved};

/// The service that follows the orders: the others report their steps to it.
pub(crate) const FOLLOWER: &str = "shipping";

#[saga_step(compensate = unpack_order)]
async fn pack_order<S: Books>(tx: &mut S::Conn, ctx: &StepContext, stock: StockReserved) -> Result<i64, StepError> {
    S::note(tx, "pack-order", ctx.saga_key(), stock.pieces).await?;
    Ok(stock.pieces)
}

#[saga_compensation]
async fn unpack_order<S: Books>(tx: &mut S::Conn, ctx: &StepContext, stock: StockReserved) -> Result<(), StepError> {
    S::note(tx, "unpack-order", ctx.saga_key(), -stock.pieces).await
}

/// The pivot: a parcel that has left is not called back. It waits for the output of the packing, whichever event arrives
/// first.
#[saga_step(no_compensation)]
async fn ship_order<S: Books>(
    tx: &mut S::Conn,
    ctx: &StepContext,
    _charged: CardCharged,
    Output(pieces): Output<pack_order>,
) -> Result<i64, StepError> {
    S::note(tx, "ship-order", ctx.saga_key(), pieces).await?;
    Ok(pieces)
}

/// The service, which ships an order within this time or not at all.
///
/// # Errors
/// Those of its builder.
pub(crate) fn shipping<S: Books>(deadline: Duration) -> Result<Service<S>, ServiceError> {
    Service::named("shipping")
        .reports_to(FOLLOWER)
        .on::<StockReserved>()
        .run::<pack_order>()
        .on::<CardCharged>()
        .run::<ship_order>()
        .emits::<OrderShipped>(|_, pieces| OrderShipped { pieces: *pieces })
        .on::<OrderPlaced>()
        .deadline::<ship_order, OrderExpired>(deadline, |_| OrderExpired {})
        .on::<StockRejected>()
        .undo::<pack_order>()
        .on::<StockRejected>()
        .tombstone::<ship_order>()
        .on::<CardDeclined>()
        .undo::<pack_order>()
        .on::<CardDeclined>()
        .tombstone::<ship_order>()
        .on::<OrderExpired>()
        .undo::<pack_order>()
        // The events that begin and end an order.
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
        .build()
}
