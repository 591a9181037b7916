//! What the services know of each other. In a company it is a crate that all of them use.

use saga_core::{StepError, saga_step};

use crate::request::{Charge, Mail, SeatRequest};

/// Books a seat, and returns the number of the booking.
#[saga_step(service = "bookings", compensated)]
pub async fn create_booking(wanted: SeatRequest) -> Result<String, StepError>;

/// Charges a card, and returns the receipt. It has no undo: it is the pivot.
#[saga_step(service = "payments")]
pub async fn process_payment(charge: Charge) -> Result<String, StepError>;

/// Sends a mail.
#[saga_step(service = "notifications")]
pub async fn send_notification(mail: Mail) -> Result<(), StepError>;
