//! The counters of a runtime.

mod statistics;

pub(crate) use self::statistics::Counters;
pub use self::statistics::Statistics;
