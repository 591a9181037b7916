#![doc = include_str!("../README.md")]

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod idempotency;
#[cfg(feature = "server")]
mod problem;
#[cfg(feature = "server")]
pub mod status;

#[cfg(feature = "client")]
pub use self::client::{ForStep, StepRequest};
#[cfg(feature = "server")]
pub use self::idempotency::{ClaimFirst, ClaimedKey, Idempotency, SagaAccepted, TtlTooLong, Tx, idempotency_key};
#[cfg(feature = "server")]
pub use self::problem::Problem;
#[cfg(feature = "server")]
pub use self::status::{StatusRoutes, openapi, status_routes};
