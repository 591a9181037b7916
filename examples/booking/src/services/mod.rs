//! The three services, each with a store and a runtime of its own, and the seat map.

pub mod bookings;
pub mod notifications;
pub mod payments;
pub mod seats;
mod services;

pub use self::services::Services;
