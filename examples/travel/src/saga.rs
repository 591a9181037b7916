//! The process: which steps a trip takes, and what may happen beside and after each other.

use std::time::Duration;

use saga_core::saga::SagaError;
use saga_core::{Saga, Wait};
use saga_sql::SqlStore;

use crate::cars::{CarRental, insure_car, pick_car};
use crate::hotels;
use crate::steps::{book_flight, check_approval, confirm_booking, hold_credit, open_booking, send_itinerary};
use crate::trip::{Approval, Itinerary, Trip};

/// A trip that may cost more needs an approval.
pub const APPROVED_ABOVE_CENTS: i64 = 200_000;
/// How long a manager has for it.
pub const APPROVAL_WITHIN: Duration = Duration::from_mins(30);
/// A trip that is not booked by then is given up.
const BOOKED_WITHIN: Duration = Duration::from_hours(24);
/// How many flights of a trip are booked at the same time.
const FLIGHTS_AT_ONCE: usize = 4;

/// Books a trip.
pub fn book_trip<S: SqlStore>() -> Result<Saga<S, Trip, Itinerary>, SagaError> {
    let rent_car = Saga::named("rent-car").input::<String>().step::<pick_car>().step::<insure_car>();
    let rent_car = rent_car.returns::<pick_car>().build()?;
    Saga::named("book-trip")
        .input::<Trip>()
        .deadline(BOOKED_WITHIN)
        .step::<open_booking>()
        .step::<hold_credit>()
        .when(
            "expensive",
            |trip: &Trip| trip.budget_cents > APPROVED_ABOVE_CENTS,
            |branch| branch.wait_for::<Approval>(Wait::within(APPROVAL_WITHIN).or_reject()).step::<check_approval>(),
        )
        .parallel(|group| {
            group
                .branch(|branch| branch.for_each::<book_flight, _>(FLIGHTS_AT_ONCE, |trip: &Trip| trip.legs.clone()))
                .branch(|branch| branch.step_from::<hotels::contract::book_room, _>(|trip: &Trip| trip.hotel.clone()))
        })
        .when(
            "with-car",
            |trip: &Trip| trip.car.is_some(),
            |branch| {
                branch.sub_saga_from::<CarRental, _>(&rent_car, |trip: &Trip| trip.car.clone().unwrap_or_default())
            },
        )
        .step::<confirm_booking>()
        .pivot()
        .step::<send_itinerary>()
        .returns::<confirm_booking>()
        .build()
}
