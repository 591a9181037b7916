//! The clock of the store, as the last reading plus the time that has passed in this process.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::store::Timestamp;

/// How long a reading is used.
const READING_TRUSTED: Duration = Duration::from_mins(1);

/// The last reading of the clock of the store.
#[derive(Debug, Default)]
pub(crate) struct StoreClock(Mutex<Option<Reading>>);

#[derive(Debug, Clone, Copy)]
struct Reading {
    /// The reading.
    said: Timestamp,
    /// When it was taken, by the clock of this process.
    at: Duration,
}

impl StoreClock {
    pub(crate) fn set(&self, said: Timestamp, at: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Reading { said, at });
    }

    /// The time of the store now; `None` if the last reading is too old.
    pub(crate) fn now(&self, now: Duration) -> Option<Timestamp> {
        let reading = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let since = now.saturating_sub(reading.at);
        let micros = i64::try_from(since.as_micros()).ok().filter(|_| since <= READING_TRUSTED)?;
        Some(Timestamp(reading.said.0.saturating_add(micros)))
    }
}
