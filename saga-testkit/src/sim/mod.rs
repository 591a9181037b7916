//! The seeded simulation of the whole engine.

mod blows;
mod branches;
mod broker;
mod calls;
mod client;
mod definitions;
mod elsewhere;
pub mod executor;
mod fault;
mod finals;
mod foreign;
mod hook;
mod log;
mod look;
mod misjudge;
mod operate;
mod outside;
mod planner;
mod random;
mod rates;
mod recorder;
mod replica;
mod run;
mod scenario;
mod steps;
mod together;
mod transport;
mod world;

pub use self::fault::{Fault, Hits};
pub use self::random::Random;
pub(crate) use self::random::splitmix64;
pub use self::rates::Rates;
pub use self::run::{Report, run, run_logged, run_planted};
pub use self::scenario::{Blow, Counts, Plant, SAGAS_MIN, SagaScript, Scenario, has_crowd, has_services};
