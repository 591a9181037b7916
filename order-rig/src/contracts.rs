//! What the services know of each other: the steps that one hosts for the sagas of others.
//!
//! A function without a body is a contract. The host's function says `implements = contracts::charge_card`, and the
//! compiler holds both to the same input and output. In a company this module is a crate that all services depend on.

use saga_core::{StepError, saga_step};

use crate::outside::{Charge, Payment, Shipment, ShipmentRequest};

/// Charges the customer's card.
#[saga_step(service = "payments", compensated)]
pub async fn charge_card(charge: Charge) -> Result<Payment, StepError>;

/// Has the carrier come for the parcel.
#[saga_step(service = "shipping", compensated)]
pub async fn book_shipment(request: ShipmentRequest) -> Result<Shipment, StepError>;
