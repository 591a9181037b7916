//! The steps of the scenarios.

use anyhow::ensure;
use booking::outside::{DECLINED, GOOD, LOST_ANSWER, LOST_REQUEST, OTHER_GOOD};
use booking::services::bookings::{book_at_the_counter, guest_of, note_cancelled};
use cucumber::{given, then, when};
use saga_reservations::FencingToken;

use crate::world::{Booking, Guest};

#[given(expr = "{word} wants seat {string} and has a good card")]
async fn wants_seat(world: &mut Booking, user: String, seat: String) {
    world.wants(user, seat, GOOD);
}

#[given(expr = "{word} wants seat {string} and has a good card of her own")]
async fn wants_seat_too(world: &mut Booking, user: String, seat: String) {
    world.wants(user, seat, OTHER_GOOD);
}

#[given(expr = "{word} wants seat {string} and has the same card")]
async fn has_the_same_card(world: &mut Booking, user: String, seat: String) -> anyhow::Result<()> {
    let card = world.first()?.request.card.clone();
    world.wants(user, seat, &card);
    Ok(())
}

#[given("her card is declined")]
async fn card_is_declined(world: &mut Booking) -> anyhow::Result<()> {
    world.pays_with(DECLINED)
}

#[given(expr = "the first {word} of the card processor is lost")]
async fn message_is_lost(world: &mut Booking, message: String) -> anyhow::Result<()> {
    world.pays_with(if message == "request" { LOST_REQUEST } else { LOST_ANSWER })
}

#[given(expr = "seat {string} is booked for Grace")]
async fn seat_is_taken(world: &mut Booking, seat: String) -> anyhow::Result<()> {
    let services = &world.deployment()?.services;
    book_at_the_counter(&**services.bookings.store(), &services.seats, &seat, "Grace").await
}

/// Its hold had ended before the booking service got the request, and another one has come and gone since.
#[given(expr = "the booking service knows a later reservation of seat {string}")]
async fn knows_a_later_reservation(world: &mut Booking, seat: String) -> anyhow::Result<()> {
    note_cancelled(&**world.deployment()?.services.bookings.store(), &seat, "Grace", FencingToken(1_000)).await
}

#[given("the mail server is down")]
async fn mail_is_down(world: &mut Booking) -> anyhow::Result<()> {
    world.deployment()?.outside.mail.set_down(true);
    Ok(())
}

#[when("the mail server is up again")]
async fn mail_is_up(world: &mut Booking) -> anyhow::Result<()> {
    world.deployment()?.outside.mail.set_down(false);
    Ok(())
}

#[given(expr = "{word} has no mailbox")]
async fn has_no_mailbox(world: &mut Booking, user: String) -> anyhow::Result<()> {
    world.deployment()?.outside.mail.remove_mailbox(&user);
    Ok(())
}

#[when(expr = "{word} books the seat")]
async fn books(world: &mut Booking, user: String) -> anyhow::Result<()> {
    let Guest { key, request } = world.guest(&user)?.clone();
    world.deployment_mut()?.book(&key, &request).await
}

#[when(expr = "a {string} event is received from the {word} service")]
#[when(expr = "a {string} event is sent by the {word} service")]
async fn event(world: &mut Booking, name: String, service: String) -> anyhow::Result<()> {
    world.receives(world.first()?, &name, &service, 1).await
}

#[when(expr = "a {string} event for {word} is received from the {word} service")]
async fn event_for(world: &mut Booking, name: String, user: String, service: String) -> anyhow::Result<()> {
    world.receives(world.guest(&user)?, &name, &service, 1).await
}

#[when(expr = "a {string} event is received {int} times from the {word} service")]
async fn duplicates(world: &mut Booking, name: String, times: usize, service: String) -> anyhow::Result<()> {
    world.receives(world.first()?, &name, &service, times).await
}

#[when("every event is received as soon as it is sent")]
async fn every_event(world: &mut Booking) -> anyhow::Result<()> {
    world.receives_all(world.first()?).await
}

#[when(expr = "every event for {word} is received as soon as it is sent")]
async fn every_event_for(world: &mut Booking, user: String) -> anyhow::Result<()> {
    world.receives_all(world.guest(&user)?).await
}

/// A service has done its step by then, and its event is on the way: only the orchestrator is missing.
#[when("the orchestrator is killed")]
async fn killed(world: &mut Booking) -> anyhow::Result<()> {
    let key = world.first()?.key.clone();
    let deployment = world.deployment_mut()?;
    deployment.replies.next(&key).await;
    deployment.kill_orchestrator().await
}

#[when("the orchestrator is started again")]
async fn started_again(world: &mut Booking) -> anyhow::Result<()> {
    world.deployment_mut()?.start_orchestrator().await
}

#[when(expr = "an operator makes a mailbox for {word}, and retries the notification")]
async fn operator_retries(world: &mut Booking, user: String) -> anyhow::Result<()> {
    let deployment = world.deployment()?;
    deployment.outside.mail.make_mailbox(&user);
    let step = deployment.services.notifications.admin().control(format!("{}>send-notification", world.first()?.key));
    Ok(step.retry("the mailbox is there").await?)
}

#[then(expr = "the saga state should be {string}")]
async fn state(world: &mut Booking, expected: String) -> anyhow::Result<()> {
    world.comes_to(world.first()?, &expected).await
}

#[then(expr = "the saga state of {word} should be {string}")]
async fn state_of(world: &mut Booking, user: String, expected: String) -> anyhow::Result<()> {
    world.comes_to(world.guest(&user)?, &expected).await
}

#[then(expr = "seat {string} is free")]
async fn seat_is_free(world: &mut Booking, seat: String) -> anyhow::Result<()> {
    has_guest(world, &seat, None).await
}

#[then(expr = "seat {string} is booked for {word}")]
async fn seat_is_booked(world: &mut Booking, seat: String, guest: String) -> anyhow::Result<()> {
    has_guest(world, &seat, Some(guest)).await
}

async fn has_guest(world: &Booking, seat: &str, expected: Option<String>) -> anyhow::Result<()> {
    let services = &world.deployment()?.services;
    let guest = guest_of(&**services.bookings.store(), seat).await?;
    ensure!(guest == expected, "the seat is booked for {guest:?}");
    let is_free = services.seats.is_free(seat).await?;
    ensure!(is_free == expected.is_none(), "the seat map says that it is {}", if is_free { "free" } else { "taken" });
    Ok(())
}

#[then(expr = "her card is charged {int} time(s)")]
async fn charged(world: &mut Booking, times: usize) -> anyhow::Result<()> {
    is_charged(world, world.first()?, times)
}

#[then(expr = "the card of {word} is charged {int} time(s)")]
async fn card_is_charged(world: &mut Booking, user: String, times: usize) -> anyhow::Result<()> {
    is_charged(world, world.guest(&user)?, times)
}

fn is_charged(world: &Booking, guest: &Guest, times: usize) -> anyhow::Result<()> {
    let charges = world.deployment()?.outside.cards.charges_of(&guest.request.card);
    ensure!(charges == times, "it is charged {charges} times");
    Ok(())
}

#[then(expr = "the services had done everything for {word} before they began for {word}")]
async fn came_one_after_the_other(world: &mut Booking, before: String, behind: String) -> anyhow::Result<()> {
    let turns = world.deployment()?.replies.turns();
    let expected = [world.guest(&before)?.key.as_str(), world.guest(&behind)?.key.as_str()];
    ensure!(turns == expected, "they worked for {turns:?}");
    Ok(())
}

#[then(expr = "the card processor was asked {int} time(s) what became of a payment")]
async fn asked(world: &mut Booking, times: u32) -> anyhow::Result<()> {
    let inquiries = world.deployment()?.outside.cards.inquiries();
    ensure!(inquiries == times, "it was asked {inquiries} times");
    Ok(())
}

#[then(expr = "the mail server has failed {int} time(s)")]
async fn mail_has_failed(world: &mut Booking, times: u32) -> anyhow::Result<()> {
    world.deployment()?.outside.mail.has_failed(times).await;
    Ok(())
}

#[then(expr = "{word} got {int} mail(s)")]
async fn got_mails(world: &mut Booking, user: String, expected: usize) -> anyhow::Result<()> {
    let mails = world.deployment()?.outside.mail.mails_to(&user);
    ensure!(mails == expected, "{user} got {mails}");
    Ok(())
}
