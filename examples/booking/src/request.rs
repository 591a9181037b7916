//! What a user asks for, and what each service is told of it.

use serde::{Deserialize, Serialize};

/// A seat for a user, paid with a card: the input of the saga.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BookingRequest {
    pub user: String,
    pub seat: String,
    pub card: String,
    pub cents: i64,
}

/// What the booking service is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeatRequest {
    pub user: String,
    pub seat: String,
}

/// What the payment service is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    pub card: String,
    pub cents: i64,
}

/// What the notification service is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mail {
    pub to: String,
    pub text: String,
}

impl BookingRequest {
    pub fn seat_request(&self) -> SeatRequest {
        SeatRequest { user: self.user.clone(), seat: self.seat.clone() }
    }

    pub fn charge(&self) -> Charge {
        Charge { card: self.card.clone(), cents: self.cents }
    }

    pub fn mail(&self, booking: &str) -> Mail {
        let text =
            format!("Seat {} is yours, and {} cents are paid. Your booking is {booking}.", self.seat, self.cents);
        Mail { to: self.user.clone(), text }
    }
}
