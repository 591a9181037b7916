//! The payments service: charges a card for an order, and refunds it if the order fails.

use saga_core::service::ServiceError;
use saga_core::{Service, StepContext, StepError, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

use super::FOLLOWER;
use crate::books::Books;
use crate::events::{CardCharged, CardDeclined, OrderExpired, OrderPlaced, StockRejected};

/// The limit of a card, in cents.
const CENTS_MAX: i64 = 500_000;

/// The part of an order that the payments service needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Charge {
    cents: i64,
}

#[saga_step(compensate = refund_card)]
async fn charge_card<S: Books>(tx: &mut S::Conn, ctx: &StepContext, charge: Charge) -> Result<CardCharged, StepError> {
    if charge.cents > CENTS_MAX {
        return Err(StepError::reject(format!("{} cents are too much for the card", charge.cents)));
    }
    S::note(tx, "charge-card", ctx.saga_key(), charge.cents).await?;
    Ok(CardCharged { payment: format!("payment of {} for {}", charge.cents, ctx.saga_key()) })
}

#[saga_compensation]
async fn refund_card<S: Books>(tx: &mut S::Conn, ctx: &StepContext, charge: Charge) -> Result<(), StepError> {
    S::note(tx, "refund-card", ctx.saga_key(), -charge.cents).await
}

/// The service.
///
/// # Errors
/// Those of its builder.
pub(crate) fn payments<S: Books>() -> Result<Service<S>, ServiceError> {
    Service::named("payments")
        .reports_to(FOLLOWER)
        .on::<OrderPlaced>()
        .run_with::<charge_card>(|order| Charge { cents: order.cents })
        .emits_output()
        .emits_on_reject::<CardDeclined>(|_, reason| CardDeclined { reason: reason.message().to_owned() })
        .on::<StockRejected>()
        .undo::<charge_card>()
        .on::<OrderExpired>()
        .undo::<charge_card>()
        .build()
}
