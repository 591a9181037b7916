//! The seeded simulation of the whole engine.

mod calls;
mod definitions;
pub mod executor;
mod fault;
mod hook;
pub mod outside;
mod random;
mod rates;
mod recorder;
mod scenario;
mod steps;
mod transport;
mod world;

pub use self::fault::{Fault, Hits};
pub use self::random::Random;
pub use self::rates::Rates;
pub use self::scenario::{Blow, SAGAS_MIN, SagaScript, Scenario};
