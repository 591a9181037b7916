//! The seeded simulation of the whole engine.

mod clients;
pub mod executor;
mod results;
mod run;
mod sagas;
mod schedule;
mod world;

pub use self::run::{Report, run, run_logged, run_mutant};
pub(crate) use self::schedule::splitmix64;
pub use self::schedule::{
    Counts, Disruption, Load, Mutant, Random, Rates, RetentionPlan, SAGAS_MIN, SagaScript, Scenario, has_crowd,
    has_load, has_locks, has_retention, has_services, shares_tenants,
};
pub use self::world::{Fault, Hits};
