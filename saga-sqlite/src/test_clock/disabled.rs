//! Without the feature `test-clock` the clock is the machine's.

use saga_core::store::Timestamp;

/// The machine's clock.
#[derive(Debug, Clone)]
pub(crate) struct ClockSource;

/// Nothing takes note of a call.
pub(crate) struct Held;

impl ClockSource {
    pub(crate) const MACHINE: Self = Self;

    #[expect(clippy::unused_self, reason = "that of the feature reads a clock")]
    pub(crate) fn now(&self) -> Option<Timestamp> {
        None
    }

    #[expect(clippy::unused_self, reason = "that of the feature holds a clock")]
    pub(crate) fn hold(&self) -> Held {
        Held
    }
}
