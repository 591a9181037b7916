//! What a seed means: which sagas run on how many processes, and what is done to them.

mod draw;
mod kinds;
mod load;
mod random;
mod rates;
mod retention;
mod scenario;

pub use self::draw::SAGAS_MIN;
pub use self::kinds::{has_crowd, has_load, has_locks, has_retention, has_services, shares_tenants};
pub(crate) use self::load::load_definitions;
pub use self::random::Random;
pub(crate) use self::random::splitmix64;
pub use self::rates::Rates;
pub use self::retention::RetentionPlan;
pub use self::scenario::{Counts, Disruption, Load, Mutant, SagaScript, Scenario};
