//! The process: the booking can be undone, the payment decides, and behind it the saga only goes forward.

use saga_core::saga::SagaError;
use saga_core::store::Store;
use saga_core::{Output, Saga};

use crate::contracts::{create_booking, process_payment, send_notification};
use crate::request::BookingRequest;

/// Books a seat.
pub fn book_seat<S: Store>() -> Result<Saga<S, BookingRequest>, SagaError> {
    Saga::named("book-seat")
        .input::<BookingRequest>()
        .step_from::<create_booking, _>(|request: &BookingRequest| request.seat_request())
        .step_from::<process_payment, _>(|request: &BookingRequest| request.charge())
        .pivot()
        .step_from::<send_notification, _>(|request: &BookingRequest, Output(number): Output<create_booking>| {
            request.mail(&number)
        })
        .build()
}
