//! Tells on the terminal what happens at each service, step by step.

use anyhow::ensure;

use crate::deployment::Deployment;
use crate::event::ServiceEvent;
use crate::outside::{DECLINED, GOOD};
use crate::request::BookingRequest;
use crate::services::bookings::guest_of;

const CENTS: i64 = 4_900;

/// Three bookings: one goes well, the payment of one fails, and the orchestrator of one is killed and started again.
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
    summary(deployment).await
}

fn request(user: &str, seat: &str, card: &str) -> BookingRequest {
    BookingRequest { user: user.to_owned(), seat: seat.to_owned(), card: card.to_owned(), cents: CENTS }
}

/// Books a seat, and delivers one event after the other. The orchestrator is killed before it gets the event `killed_before`.
async fn book(
    deployment: &mut Deployment,
    key: &str,
    request: BookingRequest,
    killed_before: Option<&str>,
) -> anyhow::Result<()> {
    deployment.book(key, &request).await?;
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
    for seat in ["12A", "12B", "12C"] {
        let guest = guest_of(&**deployment.services.bookings.store(), seat).await?;
        println!("   seat {seat} is {}", guest.map_or("free".to_owned(), |guest| format!("booked for {guest}")));
    }
    let (cards, mail) = (&deployment.outside.cards, &deployment.outside.mail);
    println!("   {} cards are charged with {} cents in all", cards.charges(), cards.cents());
    let mails = ["Ada", "Bob", "Cleo"].map(|user| mail.mails_to(user));
    println!("   Ada got {} mail, Bob {}, and Cleo {}", mails[0], mails[1], mails[2]);
    ensure!((cards.charges(), cards.cents(), mails) == (2, 2 * CENTS, [1, 0, 1]), "the books do not agree");
    Ok(())
}
