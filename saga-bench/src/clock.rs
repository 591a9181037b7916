//! The only place here that reads clocks.

use std::time::{Duration, Instant, SystemTime};

/// Measures from its making.
#[derive(Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    pub(crate) fn started() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The machine's clock, in microseconds since 1970, to compare with what the database wrote on the same machine.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn micros_since_1970() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}
