//! Tells on the terminal what happens at each service, step by step.

use anyhow::ensure;

use crate::deployment::Deployment;
use crate::event::ServiceEvent;
use crate::outside::{DECLINED, GOOD, OTHER_GOOD};
use crate::request::BookingRequest;
use crate::services::bookings::guest_of;

const CENTS: i64 = 4_900;
const USERS: [&str; 6] = ["Ada", "Bob", "Cleo", "Dan", "Eve", "Finn"];

/// Six bookings: one goes well, the payment of one fails, the orchestrator of one is killed and started again, one wants a seat
/// that is taken, and two have the same card.
///
/// # Errors
/// A booking does not end as it should.
///
/// # Cancel safety
/// If it is dropped, the bookings stay where they are.
pub async fn tell(deployment: &mut Deployment) -> anyhow::Result<()> {
    println!("-- Ada books seat 12A, and all goes well");
    book(deployment, "booking-1", request("Ada", "12A", GOOD), None).await?;
    println!("-- Bob books seat 12B, and his card is declined");
    book(deployment, "booking-2", request("Bob", "12B", DECLINED), None).await?;
    println!("-- Cleo books seat 12C, and the orchestrator is killed while it waits for her payment");
    book(deployment, "booking-3", request("Cleo", "12C", GOOD), Some("PaymentProcessed")).await?;
    println!("-- Dan wants seat 12A too");
    book(deployment, "booking-4", request("Dan", "12A", OTHER_GOOD), None).await?;
    println!("-- Eve and Finn book seats at the same time, with one card");
    deployment.book("booking-5", &request("Eve", "12D", GOOD)).await?;
    deployment.book("booking-6", &request("Finn", "12E", GOOD)).await?;
    line(deployment.state("booking-6").await?, "booking-6 waits until booking-5 has ended");
    follow(deployment, "booking-5", None).await?;
    follow(deployment, "booking-6", None).await?;
    summary(deployment).await
}

fn request(user: &str, seat: &str, card: &str) -> BookingRequest {
    BookingRequest { user: user.to_owned(), seat: seat.to_owned(), card: card.to_owned(), cents: CENTS }
}

/// Books a seat, and follows the saga to its end.
async fn book(
    deployment: &mut Deployment,
    key: &str,
    request: BookingRequest,
    killed_before: Option<&str>,
) -> anyhow::Result<()> {
    deployment.book(key, &request).await?;
    follow(deployment, key, killed_before).await
}

/// Delivers one event after the other. The orchestrator is killed before it gets the event `killed_before`.
async fn follow(deployment: &mut Deployment, key: &str, killed_before: Option<&str>) -> anyhow::Result<()> {
    loop {
        let event = tokio::select! {
            event = deployment.replies.next(key) => event,
            outcome = deployment.closed(key) => {
                line(deployment.state(key).await?, &format!("{key} is {}", outcome?));
                return Ok(());
            }
        };
        line(deployment.state(key).await?, &event.to_string());
        if killed_before == Some(event.name) {
            deliver_to_the_next(deployment, key, &event).await?;
        } else {
            deployment.replies.deliver(key, 1);
        }
    }
}

/// Kills the orchestrator, sends it the event, and starts it again.
async fn deliver_to_the_next(deployment: &mut Deployment, key: &str, event: &ServiceEvent) -> anyhow::Result<()> {
    deployment.kill_orchestrator().await?;
    line(deployment.state(key).await?, "the orchestrator is killed, and its file says where it was");
    deployment.replies.deliver(key, 1);
    deployment.start_orchestrator().await?;
    line("", &format!("the orchestrator is started again, and gets {}", event.name));
    Ok(())
}

fn line(state: &str, text: &str) {
    println!("   {state:<22} {text}");
}

/// What is true at the end.
async fn summary(deployment: &Deployment) -> anyhow::Result<()> {
    println!("-- the books");
    for seat in ["12A", "12B", "12C", "12D", "12E"] {
        let guest = guest_of(&**deployment.services.bookings.store(), seat).await?;
        println!("   seat {seat} is {}", guest.map_or("free".to_owned(), |guest| format!("booked for {guest}")));
    }
    let seats = deployment.services.seats.count().await?;
    println!("   of the seat map {} seats are confirmed, and {} are free", seats.0, seats.1);
    let (cards, mail) = (&deployment.outside.cards, &deployment.outside.mail);
    println!("   {} payments of {} cents in all", cards.charges(), cards.cents());
    let mails = USERS.map(|user| mail.mails_to(user));
    let told = USERS.iter().zip(mails).map(|(user, mails)| format!("{user} {mails}")).collect::<Vec<_>>();
    println!("   mails: {}", told.join(", "));
    let books = (seats, cards.charges(), cards.cents(), mails);
    ensure!(books == ((4, 2), 4, 4 * CENTS, [1, 0, 1, 0, 1, 1]), "the books do not agree");
    Ok(())
}
