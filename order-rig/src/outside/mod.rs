//! Other people's services: a payment gateway and a carrier, which this example has to bring along itself.
//!
//! They keep a book of their own, in a file of its own, and know nothing of the shop. As Stripe does, they honour an
//! idempotency key: the same request under it is answered from the book, another one is refused. And as any
//! service in another house, they decline, are slow, break down, and sometimes break down *after* the work was done.
//! What befalls a call is decided by a seed and the call's key, so that a run can be repeated.
//!
//! They run inside the program, or as a process of their own (`order-rig outside`), whose calls outlive their caller.

mod book;
mod carrier;
mod client;
mod dice;
mod gateway;
mod journal;
mod manners;
mod server;
mod services;
mod tally;
#[cfg(test)]
mod tests;

pub use book::{Book, Reply};
pub use carrier::{CancelOutcome, Shipment, ShipmentRequest};
pub use client::{Carrier, Gateway, Outside};
pub use dice::{Dice, Weather};
pub use gateway::{Charge, Payment, Refund};
pub use manners::{Hold, Journal, LateCalls, Manners};
pub use server::serve;
pub use services::Services;
pub use tally::Tally;
