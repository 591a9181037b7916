//! What a user asks for, and what each service is told of it.

use saga_core::{Entity, Locked, SemanticLock};
use saga_reservations::FencingToken;
use serde::{Deserialize, Serialize};

/// A seat for a user, paid with a card: the input of the saga.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BookingRequest {
    pub user: String,
    pub seat: String,
    pub card: String,
    pub cents: i64,
}

/// The account of a card, under a semantic lock: what one booking charges may still be declined while the next one wants to know.
pub struct CardAccount;

impl SemanticLock for CardAccount {
    const NAME: &'static str = "card-account";
}

/// What the booking service is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeatRequest {
    pub user: String,
    pub seat: String,
    /// That of the reservation. The next reservation of the seat has a higher one.
    pub token: FencingToken,
}

/// What the payment service is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    pub card: String,
    pub cents: i64,
    /// That of the lock on the account. The next booking with the card has a higher one.
    pub token: u64,
}

/// What the notification service is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mail {
    pub to: String,
    pub text: String,
}

impl BookingRequest {
    pub fn account(&self) -> Entity {
        Entity::new("card", &self.card)
    }

    pub fn seat_request(&self, token: FencingToken) -> SeatRequest {
        SeatRequest { user: self.user.clone(), seat: self.seat.clone(), token }
    }

    pub fn charge(&self, account: &Locked<CardAccount>) -> Charge {
        let token = account.token_of(&self.account()).unwrap_or_default();
        Charge { card: self.card.clone(), cents: self.cents, token }
    }

    pub fn mail(&self, booking: &str) -> Mail {
        let text =
            format!("Seat {} is yours, and {} cents are paid. Your booking is {booking}.", self.seat, self.cents);
        Mail { to: self.user.clone(), text }
    }
}
