//! The clock that a test gives to the store. Only with the feature `test-clock` there can be one.
//!
//! The server's clock cannot be set, so the schema of such a store has a clock of its own: a sequence, which every session sees
//! at once, also inside a transaction. Each statement and function of the store is written for it when the store is opened, and
//! each call first sets it to the time of the test.

#[cfg(not(feature = "test-clock"))]
mod disabled;
#[cfg(feature = "test-clock")]
mod enabled;

#[cfg(not(feature = "test-clock"))]
pub(crate) use self::disabled::{Held, TestClock};
#[cfg(feature = "test-clock")]
pub(crate) use self::enabled::{Held, TestClock};
