//! What a store's tests of its hot path share: counters with bounds, batches of steps in the middle of their sagas, and
//! whole sagas in batches that are the same in every run. What is counted, and how, is the store's own.

mod cost;
mod sagas;
mod steps;

pub use self::cost::{Bound, Cost, assert_sagas_within};
pub use self::sagas::WholeSagas;
pub use self::steps::Steps;
