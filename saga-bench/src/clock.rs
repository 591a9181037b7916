//! The only place here that reads clocks.

use std::time::{Duration, Instant, SystemTime};

/// Measures from its making.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    pub(crate) fn started() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// How long after this one a later one was started.
    pub(crate) fn until(self, later: Self) -> Duration {
        later.0.saturating_duration_since(self.0)
    }
}

/// The machine's clock, in microseconds since 1970, to compare with what the database wrote on the same machine.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn micros_since_1970() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}
