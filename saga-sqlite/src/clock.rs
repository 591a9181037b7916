//! The only place here that reads a clock.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use saga_core::store::Timestamp;

/// The store's clock: the machine's, made to never go backwards within the process.
#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    last: i64,
    /// By how much the machine's clock was set back since the start: time goes on from where it was.
    set_back: i64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { began: instant(), told: Mutex::default() }
    }

    /// The time that is written down, and that decides leases and due times.
    pub(crate) fn now(&self) -> Timestamp {
        self.tell(system_micros())
    }

    /// Time since this clock was made, for limits within the process.
    pub(crate) fn elapsed(&self) -> Duration {
        instant().saturating_duration_since(self.began)
    }

    fn tell(&self, system: i64) -> Timestamp {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let now = system.saturating_add(told.set_back);
        if now < told.last {
            told.set_back += told.last - now;
        } else {
            told.last = now;
        }
        Timestamp(told.last)
    }
}

/// The moment that lies `duration` behind `now`.
pub(crate) fn after(now: Timestamp, duration: Duration) -> Timestamp {
    Timestamp(now.0.saturating_add(micros(duration)))
}

/// How long ago `earlier` was at `now`; nothing when it lies ahead.
pub(crate) fn between(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now.0.saturating_sub(earlier.0)).unwrap_or(0))
}

pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
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
        let clock = Clock::new();
        let told: Vec<i64> = [100, 150, 20, 30, 40, 500].map(|system| clock.tell(system).0).into();
        assert_eq!(told, [100, 150, 150, 160, 170, 630]);
    }
}
