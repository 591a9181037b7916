//! Each of these definitions has a mistake, and the scenario about that mistake fails.

use anyhow::ensure;
use booking::contracts::{create_booking, process_payment, send_notification};
use booking::request::{BookingRequest, CardAccount};
use booking::services::seats::reservation_of;
use libtest_mimic::{Failed, Trial};
use saga_core::saga::SagaError;
use saga_core::{Locked, Output, Saga};
use saga_reservations::{FencingToken, steps as reservations};
use saga_sqlite::SqliteStore;

use crate::carrier::{Carrier, feature};
use crate::run::{Setting, run};
use crate::scenarios::failed;
use crate::transcript::Transcript;

/// The contracts, which say that there is nothing to undo. Without these words, `build()` refuses both mistakes.
mod nothing_to_undo {
    use booking::request::{Mail, SeatRequest};
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "bookings", no_compensation)]
    pub(super) async fn create_booking(wanted: SeatRequest) -> Result<String, StepError>;

    #[saga_step(service = "notifications", no_compensation)]
    pub(super) async fn send_notification(mail: Mail) -> Result<(), StepError>;
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("planted::a_booking_without_undo_is_found", || {
            without_undo_is_found().map_err(|error| failed(&error))
        }),
        Trial::test("planted::a_notification_before_the_payment_is_found", || {
            is_found("No mail is sent about a booking that is not paid", "And Ada got 0 mails", || {
                Ok(notification_first()?)
            })
        }),
        Trial::test("planted::a_notification_before_the_payment_is_refused", notification_first_is_refused),
        Trial::test("planted::a_booking_without_a_reservation_is_found", || {
            is_found(
                "Two want the same seat, and one of them gets it",
                "Then the saga state of Grace should be \"CANCELLED\"",
                || Ok(without_reservation()?),
            )
        }),
        Trial::test("planted::a_booking_without_a_lock_is_found", || {
            is_found(
                "Two bookings with one card come one after the other",
                "Then the saga state of Grace should be \"AWAITING_CARD\"",
                || Ok(without_lock()?),
            )
        }),
    ]
}

fn without_undo_is_found() -> anyhow::Result<()> {
    let ran = run_with(None, || Ok(without_undo()?))?;
    let cancelling = "Then the saga state should be \"CANCELLING_BOOKING\"";
    let expected = [
        ("The next booking with a card goes on when the one before is cancelled", cancelling),
        ("The orchestrator is killed while it cancels the booking", cancelling),
        ("The payment fails, and the booking is cancelled", cancelling),
    ];
    let found: Vec<_> = ran.failures.iter().map(|(scenario, step)| (scenario.as_str(), step.as_str())).collect();
    ensure!(found == expected, "{ran}");
    Ok(())
}

/// The scenario fails at this step.
fn is_found(
    scenario: &str,
    step: &str,
    definition: fn() -> anyhow::Result<Saga<SqliteStore, BookingRequest>>,
) -> Result<(), Failed> {
    let ran = run_with(Some(scenario), definition).map_err(|error| failed(&error))?;
    if ran.failures.get(scenario).is_some_and(|failed| failed == step) { Ok(()) } else { Err(ran.to_string().into()) }
}

fn notification_first_is_refused() -> Result<(), Failed> {
    let built = Saga::<SqliteStore, _>::named("book-seat")
        .input::<BookingRequest>()
        .step_from::<create_booking, _>(|request: &BookingRequest| request.seat_request(FencingToken(0)))
        .step_from::<send_notification, _>(|request: &BookingRequest| request.mail("none"))
        .step_from::<process_payment, _>(|request: &BookingRequest| request.charge(&Locked::for_test([])))
        .pivot()
        .build();
    let refused = built.err().ok_or("it was built")?.to_string();
    if refused.contains("send-notification") { Ok(()) } else { Err(refused.into()) }
}

/// Runs the scenarios of this name, or all, on a definition.
fn run_with(
    scenario: Option<&str>,
    definition: fn() -> anyhow::Result<Saga<SqliteStore, BookingRequest>>,
) -> anyhow::Result<Transcript> {
    run(feature(), scenario.map(str::to_owned), Setting { carrier: Carrier::Memory, definition })
}

fn without_undo() -> Result<Saga<SqliteStore, BookingRequest>, SagaError> {
    Saga::named("book-seat")
        .input::<BookingRequest>()
        .semantic_lock::<CardAccount, _>(|request: &BookingRequest| request.account())
        .step_from::<reservations::reserve, _>(|request: &BookingRequest| reservation_of(&request.seat))
        .step_from::<nothing_to_undo::create_booking, _>(
            |request: &BookingRequest, Output(held): Output<reservations::reserve>| request.seat_request(held.token),
        )
        .step_from::<process_payment, _>(|request: &BookingRequest, account: Locked<CardAccount>| {
            request.charge(&account)
        })
        .pivot()
        .step_from::<reservations::confirm, _>(|_: &BookingRequest, Output(held): Output<reservations::reserve>| held)
        .step_from::<send_notification, _>(
            |request: &BookingRequest, Output(number): Output<nothing_to_undo::create_booking>| request.mail(&number),
        )
        .build()
}

fn notification_first() -> Result<Saga<SqliteStore, BookingRequest>, SagaError> {
    Saga::named("book-seat")
        .input::<BookingRequest>()
        .step_from::<reservations::reserve, _>(|request: &BookingRequest| reservation_of(&request.seat))
        .step_from::<create_booking, _>(|request: &BookingRequest, Output(held): Output<reservations::reserve>| {
            request.seat_request(held.token)
        })
        .step_from::<nothing_to_undo::send_notification, _>(
            |request: &BookingRequest, Output(number): Output<create_booking>| request.mail(&number),
        )
        .step_from::<process_payment, _>(|request: &BookingRequest| request.charge(&Locked::for_test([])))
        .pivot()
        .step_from::<reservations::confirm, _>(|_: &BookingRequest, Output(held): Output<reservations::reserve>| held)
        .build()
}

fn without_reservation() -> Result<Saga<SqliteStore, BookingRequest>, SagaError> {
    Saga::named("book-seat")
        .input::<BookingRequest>()
        .semantic_lock::<CardAccount, _>(|request: &BookingRequest| request.account())
        .step_from::<create_booking, _>(|request: &BookingRequest| request.seat_request(FencingToken(0)))
        .step_from::<process_payment, _>(|request: &BookingRequest, account: Locked<CardAccount>| {
            request.charge(&account)
        })
        .pivot()
        .step_from::<send_notification, _>(|request: &BookingRequest, Output(number): Output<create_booking>| {
            request.mail(&number)
        })
        .build()
}

fn without_lock() -> Result<Saga<SqliteStore, BookingRequest>, SagaError> {
    Saga::named("book-seat")
        .input::<BookingRequest>()
        .step_from::<reservations::reserve, _>(|request: &BookingRequest| reservation_of(&request.seat))
        .step_from::<create_booking, _>(|request: &BookingRequest, Output(held): Output<reservations::reserve>| {
            request.seat_request(held.token)
        })
        .step_from::<process_payment, _>(|request: &BookingRequest| request.charge(&Locked::for_test([])))
        .pivot()
        .step_from::<reservations::confirm, _>(|_: &BookingRequest, Output(held): Output<reservations::reserve>| held)
        .step_from::<send_notification, _>(|request: &BookingRequest, Output(number): Output<create_booking>| {
            request.mail(&number)
        })
        .build()
}
