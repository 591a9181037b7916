//! Each of these definitions has a mistake, and the scenario about that mistake fails.

use anyhow::ensure;
use booking::contracts::{create_booking, process_payment, send_notification};
use booking::request::BookingRequest;
use libtest_mimic::{Failed, Trial};
use saga_core::saga::SagaError;
use saga_core::{Output, Saga};
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
            notification_first_is_found().map_err(|error| failed(&error))
        }),
        Trial::test("planted::a_notification_before_the_payment_is_refused", notification_first_is_refused),
    ]
}

fn without_undo_is_found() -> anyhow::Result<()> {
    let ran = run_with(None, || Ok(without_undo()?))?;
    let expected = [
        (
            "The orchestrator is killed while it cancels the booking",
            "Then the saga state should be \"CANCELLING_BOOKING\"",
        ),
        ("The payment fails, and the booking is cancelled", "Then the saga state should be \"CANCELLING_BOOKING\""),
    ];
    let found: Vec<_> = ran.failures.iter().map(|(scenario, step)| (scenario.as_str(), step.as_str())).collect();
    ensure!(found == expected, "{ran}");
    Ok(())
}

fn notification_first_is_found() -> anyhow::Result<()> {
    let scenario = "No mail is sent about a booking that is not paid";
    let ran = run_with(Some(scenario), || Ok(notification_first()?))?;
    let step = ran.failures.get(scenario).map(String::as_str);
    ensure!(step == Some("And Ada got 0 mails"), "{ran}");
    Ok(())
}

fn notification_first_is_refused() -> Result<(), Failed> {
    let built = Saga::<SqliteStore, _>::named("book-seat")
        .input::<BookingRequest>()
        .step_from::<create_booking, _>(|request: &BookingRequest| request.seat_request())
        .step_from::<send_notification, _>(|request: &BookingRequest| request.mail("none"))
        .step_from::<process_payment, _>(|request: &BookingRequest| request.charge())
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
        .step_from::<nothing_to_undo::create_booking, _>(|request: &BookingRequest| request.seat_request())
        .step_from::<process_payment, _>(|request: &BookingRequest| request.charge())
        .pivot()
        .step_from::<send_notification, _>(
            |request: &BookingRequest, Output(number): Output<nothing_to_undo::create_booking>| request.mail(&number),
        )
        .build()
}

fn notification_first() -> Result<Saga<SqliteStore, BookingRequest>, SagaError> {
    Saga::named("book-seat")
        .input::<BookingRequest>()
        .step_from::<create_booking, _>(|request: &BookingRequest| request.seat_request())
        .step_from::<nothing_to_undo::send_notification, _>(
            |request: &BookingRequest, Output(number): Output<create_booking>| request.mail(&number),
        )
        .step_from::<process_payment, _>(|request: &BookingRequest| request.charge())
        .pivot()
        .build()
}
