//! The clock that a test gives to the store. Only with the feature `test-clock` there can be one.

#[cfg(not(feature = "test-clock"))]
mod disabled;
#[cfg(feature = "test-clock")]
mod enabled;

#[cfg(not(feature = "test-clock"))]
pub(crate) use self::disabled::{ClockSource, Held};
#[cfg(feature = "test-clock")]
pub(crate) use self::enabled::{ClockSource, Held};
