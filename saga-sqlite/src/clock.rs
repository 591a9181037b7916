//! The clock of the store. Only this file reads the machine's clocks.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use saga_core::store::Timestamp;

use crate::test_clock::{ClockSource, Held};

/// The store's clock: the machine's, but it never goes backwards within the process. A test may give another one.
#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    state: Mutex<ClockState>,
    source: ClockSource,
}

#[derive(Debug, Default)]
struct ClockState {
    last: i64,
    /// How far the machine's clock was set back since the start. Times continue from the last one.
    correction: i64,
}

impl Clock {
    pub(crate) fn new(source: ClockSource) -> Self {
        Self { began: instant(), state: Mutex::default(), source }
    }

    /// The time that is stored, and that decides leases and due times.
    pub(crate) fn now(&self) -> Timestamp {
        self.source.now().unwrap_or_else(|| self.advance_to(system_micros()))
    }

    /// A test's clock stands still until this is dropped: a call of the store is under way.
    pub(crate) fn hold(&self) -> Held {
        self.source.hold()
    }

    /// The time since this clock was made, for limits within the process.
    pub(crate) fn elapsed(&self) -> Duration {
        instant().saturating_duration_since(self.began)
    }

    fn advance_to(&self, system: i64) -> Timestamp {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = system.saturating_add(state.correction);
        if now < state.last {
            state.correction += state.last - now;
        } else {
            state.last = now;
        }
        Timestamp(state.last)
    }
}

/// A thousand years.
const MICROS_MAX: i64 = 1_000 * 365 * 24 * 3_600 * 1_000_000;

/// The time `duration` after `now`.
pub(crate) fn plus(now: Timestamp, duration: Duration) -> Timestamp {
    Timestamp(now.0.saturating_add(micros(duration)))
}

/// How long ago `earlier` was at `now`. Zero if it lies ahead.
pub(crate) fn elapsed_between(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now.0.saturating_sub(earlier.0)).unwrap_or(0))
}

/// The duration as it is stored: at most a thousand years, so that sums and differences of times fit into a column.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).map_or(MICROS_MAX, |micros| micros.min(MICROS_MAX))
}

#[expect(clippy::disallowed_methods, reason = "this store is its own database, whose clock is the machine's")]
fn system_micros() -> i64 {
    micros(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

#[expect(clippy::disallowed_methods, reason = "limits on the writer thread are measured by the machine's clock")]
fn instant() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_goes_on_from_where_it_was() {
        let clock = Clock::new(ClockSource::MACHINE);
        let times: Vec<i64> = [100, 150, 20, 30, 40, 500].map(|system| clock.advance_to(system).0).into();
        assert_eq!(times, [100, 150, 150, 160, 170, 630]);
    }
}
