//! The program runs, and prints what it says.

use std::process::{Command, Output};

fn run(args: &[&str]) -> (Output, String, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_booking")).args(args).output().unwrap_or_else(|error| panic!("{error}"));
    let (out, err) =
        (String::from_utf8_lossy(&ran.stdout).into_owned(), String::from_utf8_lossy(&ran.stderr).into_owned());
    (ran, out, err)
}

/// What each line says, without the columns.
fn words(out: &str) -> Vec<String> {
    out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn check(args: &[&str]) {
    let (ran, out, err) = run(args);
    assert!(ran.status.success(), "{out}{err}");
    let expected = "-- Ada books seat 12A, and all goes well
AWAITING_BOOKING bookings BookingCreated: booking-1
AWAITING_PAYMENT payments PaymentProcessed: receipt of booking-1:process-payment
AWAITING_NOTIFICATION notifications NotificationSent
COMPLETED booking-1 is completed
-- Bob books seat 12B, and his card is declined
AWAITING_BOOKING bookings BookingCreated: booking-2
AWAITING_PAYMENT payments PaymentFailed: the card is declined
CANCELLING_BOOKING bookings BookingCancelled: the saga that asked for it compensates
CANCELLED booking-2 is compensated, because `process-payment` failed: the card is declined
-- Cleo books seat 12C, and the orchestrator is killed while it waits for her payment
AWAITING_BOOKING bookings BookingCreated: booking-3
AWAITING_PAYMENT payments PaymentProcessed: receipt of booking-3:process-payment
AWAITING_PAYMENT the orchestrator is killed, and its file says where it was
the orchestrator is started again, and gets PaymentProcessed
AWAITING_NOTIFICATION notifications NotificationSent
COMPLETED booking-3 is completed
-- Dan wants seat 12A too
CANCELLED booking-4 is compensated, because `reserve` failed: 1 of seat/12A were asked for, and 0 of 1 are free
-- Eve and Finn book seats at the same time, with one card
AWAITING_CARD booking-6 waits until booking-5 has ended
AWAITING_BOOKING bookings BookingCreated: booking-5
AWAITING_PAYMENT payments PaymentProcessed: receipt of booking-5:process-payment
AWAITING_NOTIFICATION notifications NotificationSent
COMPLETED booking-5 is completed
AWAITING_BOOKING bookings BookingCreated: booking-6
AWAITING_PAYMENT payments PaymentProcessed: receipt of booking-6:process-payment
AWAITING_NOTIFICATION notifications NotificationSent
COMPLETED booking-6 is completed
-- the books
seat 12A is booked for Ada
seat 12B is free
seat 12C is booked for Cleo
seat 12D is booked for Eve
seat 12E is booked for Finn
of the seat map 4 seats are confirmed, and 2 are free
4 payments of 19600 cents in all
mails: Ada 1, Bob 0, Cleo 1, Dan 0, Eve 1, Finn 1";
    assert_eq!(words(&out), expected.lines().collect::<Vec<_>>(), "{err}");
}

#[test]
fn six_bookings_end_as_they_must() {
    check(&[]);
}

#[cfg(feature = "rabbitmq")]
#[test]
fn the_orchestrator_is_killed_as_a_process_of_its_own() {
    let tokio = tokio::runtime::Runtime::new().unwrap_or_else(|error| panic!("{error}"));
    let vhost = tokio.block_on(saga_servers::shared::vhost("booking")).unwrap_or_else(|error| panic!("{error}"));
    check(&["--broker", vhost.url()]);
}

#[test]
fn bad_options_are_explained() {
    let (ran, _, err) = run(&["--seat", "12A"]);
    assert!(!ran.status.success() && err.contains("unexpected argument '--seat' found"), "{err}");
    let (ran, _, err) = run(&["--broker"]);
    assert!(!ran.status.success() && err.contains("a value is required for '--broker <BROKER>'"), "{err}");
}

#[cfg(not(feature = "broker"))]
#[test]
fn a_broker_needs_its_feature() {
    let (ran, _, err) = run(&["--broker", "amqp://localhost"]);
    assert!(!ran.status.success() && err.contains("built without a broker; build it for one with"), "{err}");
}

#[cfg(feature = "sqs")]
#[test]
fn queues_without_a_name_are_refused() {
    let (ran, _, err) = run(&["--broker", "sqs:"]);
    assert!(!ran.status.success() && err.contains("the prefix has 0 bytes"), "{err}");
}

#[cfg(feature = "rabbitmq")]
#[test]
fn an_address_that_is_none_is_named() {
    let (ran, _, err) = run(&["--broker", "localhost"]);
    assert!(!ran.status.success() && err.contains("the broker's URL has no scheme; write amqp://"), "{err}");
}
