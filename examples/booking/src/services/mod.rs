//! The three services, each with a store and a runtime of its own.

pub mod bookings;
pub mod notifications;
pub mod payments;
mod services;

pub use self::services::Services;
