//! The stock service: reserves goods for an order, and releases them if the order fails.

use saga_core::service::ServiceError;
use saga_core::{Service, StepContext, StepError, saga_compensation, saga_step};

use super::FOLLOWER;
use crate::books::Books;
use crate::events::{CardDeclined, OrderExpired, OrderPlaced, StockRejected, StockReserved};

/// The input is the event itself.
#[saga_step(compensate = release_stock, retry(base = "50ms", cap = "250ms"))]
async fn reserve_stock<S: Books>(
    tx: &mut S::Conn,
    ctx: &StepContext,
    order: OrderPlaced,
) -> Result<StockReserved, StepError> {
    if order.awaits_delivery {
        return Err(StepError::retry("a part of it is on its way to the warehouse"));
    }
    let mut pieces = 0;
    for item in sorted(&order) {
        if !S::take(tx, &item.sku, item.quantity).await? {
            return Err(StepError::reject(format!("there are not {} of {}", item.quantity, item.sku)));
        }
        pieces += item.quantity;
    }
    S::note(tx, "reserve-stock", ctx.saga_key(), pieces).await?;
    Ok(StockReserved { pieces })
}

/// The step record has the reserved goods; the event that causes the undo does not.
#[saga_compensation]
async fn release_stock<S: Books>(
    tx: &mut S::Conn,
    ctx: &StepContext,
    order: OrderPlaced,
    reserved: StockReserved,
) -> Result<(), StepError> {
    for item in sorted(&order) {
        S::take(tx, &item.sku, -item.quantity).await?;
    }
    S::note(tx, "release-stock", ctx.saga_key(), -reserved.pieces).await
}

/// Rows are locked in one order, so that two orders never wait for each other.
fn sorted(order: &OrderPlaced) -> Vec<&crate::events::Item> {
    let mut items: Vec<_> = order.items.iter().collect();
    items.sort_by(|one, other| one.sku.cmp(&other.sku));
    items
}

/// The service.
///
/// # Errors
/// Those of its builder.
pub(crate) fn stock<S: Books>() -> Result<Service<S>, ServiceError> {
    Service::named("stock")
        .reports_to(FOLLOWER)
        .on::<OrderPlaced>()
        .run::<reserve_stock>()
        .emits::<StockReserved>(|_, reserved| reserved.clone())
        .emits_on_reject::<StockRejected>(|_, reason| StockRejected { reason: reason.message().to_owned() })
        .on::<CardDeclined>()
        .undo::<reserve_stock>()
        .on::<OrderExpired>()
        .undo::<reserve_stock>()
        .build()
}
