//! The process: the booking can be undone, the payment decides, and behind it the saga only goes forward.

use saga_core::saga::SagaError;
use saga_core::store::Store;
use saga_core::{Locked, Output, Saga};
use saga_reservations::steps as reservations;

use crate::contracts::{create_booking, process_payment, send_notification};
use crate::request::{BookingRequest, CardAccount};
use crate::services::seats;

/// Books a seat.
///
/// The lock comes first, so a booking that waits for its card keeps no seat from others.
pub fn book_seat<S: Store>() -> Result<Saga<S, BookingRequest>, SagaError> {
    Saga::named("book-seat")
        .input::<BookingRequest>()
        .semantic_lock::<CardAccount, _>(|request: &BookingRequest| request.account())
        .step_from::<reservations::reserve, _>(|request: &BookingRequest| seats::reservation_of(&request.seat))
        .step_from::<create_booking, _>(|request: &BookingRequest, Output(held): Output<reservations::reserve>| {
            request.seat_request(held.token)
        })
        .step_from::<process_payment, _>(|request: &BookingRequest, account: Locked<CardAccount>| {
            request.charge(&account)
        })
        .pivot()
        .step_from::<reservations::confirm, _>(|_: &BookingRequest, Output(held): Output<reservations::reserve>| held)
        .step_from::<send_notification, _>(|request: &BookingRequest, Output(number): Output<create_booking>| {
            request.mail(&number)
        })
        .build()
}
