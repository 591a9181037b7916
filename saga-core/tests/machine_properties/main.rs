//! The machine, held to the text of the guarantees by random shapes and random orders of events.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod arms;
mod attempts;
mod cases;
mod choices;
mod choreography;
mod driven;
mod hostile;
mod lawful;
mod ledger;
mod locks;
mod model;
mod moved;
mod moved_choices;
mod pauses;
mod resolving;
mod shapes;
mod takeovers;
mod trees;
