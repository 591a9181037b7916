//! The payment service: it charges cards at the card processor.

use saga_core::service::ServiceError;
use saga_core::step::Resolved;
use saga_core::store::Store;
use saga_core::{Service, State, StepContext, StepError, saga_resolution, saga_step};

use crate::contracts;
use crate::outside::{CardProcessor, ChargeError};
use crate::request::Charge;

/// The service.
pub fn service<S: Store>() -> Result<Service<S>, ServiceError> {
    Service::named("payments").host::<process_payment>().build()
}

/// Charges the card. Without an answer it is unknown whether the card was charged, and `find_payment` asks.
#[saga_step(implements = contracts::process_payment, resolve = find_payment, retry(base = "20ms"))]
pub async fn process_payment(
    ctx: &StepContext,
    charge: Charge,
    State(cards): State<CardProcessor>,
) -> Result<String, StepError> {
    cards.charge(ctx.key(), &charge).map_err(|error| match error {
        ChargeError::Declined | ChargeError::Overtaken => StepError::reject(error.to_string()),
        ChargeError::NoAnswer => StepError::retry(error),
    })
}

/// Asks the card processor what became of a payment that it did not answer.
#[saga_resolution]
pub async fn find_payment(
    ctx: &StepContext,
    _charge: Charge,
    State(cards): State<CardProcessor>,
) -> Result<Resolved<String>, StepError> {
    Ok(cards.find(ctx.key()).map_or(Resolved::NotDone, Resolved::Done))
}
