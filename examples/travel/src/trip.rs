//! What a trip is.

use saga_core::Signal;
use serde::{Deserialize, Serialize};

/// What a traveller asks for, and the input of the saga.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trip {
    /// The client's number of the trip, which is the key of the saga.
    pub id: String,
    pub traveller: String,
    pub legs: Vec<Leg>,
    pub hotel: Stay,
    /// The city in which a car is wanted.
    #[serde(default)]
    pub car: Option<String>,
    /// The most that the trip may cost.
    pub budget_cents: i64,
}

/// A flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leg {
    pub from: String,
    pub to: String,
    pub day: String,
}

/// Nights in a hotel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stay {
    pub city: String,
    pub nights: u32,
}

/// A manager's answer about an expensive trip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub approved: bool,
    pub by: String,
}

/// The same with an id: sent again, it counts once.
#[derive(Deserialize)]
pub struct Answer {
    pub id: String,
    pub approval: Approval,
}

impl Signal for Approval {
    const NAME: &'static str = "approval";
}

/// The result of the saga.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Itinerary {
    pub tickets: Vec<String>,
    pub room: String,
    pub car: Option<String>,
    pub cost_cents: i64,
}
