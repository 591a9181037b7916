//! The clock of the store, carried on by the clock of this process.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::store::Timestamp;

/// How long a reading of the store's clock is carried on by the clock of this process.
const READING_TRUSTED: Duration = Duration::from_mins(1);

/// The clock of the store, as it was read last.
#[derive(Debug, Default)]
pub(crate) struct StoreClock(Mutex<Option<Reading>>);

#[derive(Debug, Clone, Copy)]
struct Reading {
    /// What it said.
    said: Timestamp,
    /// When it said so, by the clock of this process.
    at: Duration,
}

impl StoreClock {
    pub(crate) fn set(&self, said: Timestamp, at: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Reading { said, at });
    }

    /// What it says now, if it was read lately.
    pub(crate) fn now(&self, now: Duration) -> Option<Timestamp> {
        let reading = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let since = now.saturating_sub(reading.at);
        let micros = i64::try_from(since.as_micros()).ok().filter(|_| since <= READING_TRUSTED)?;
        Some(Timestamp(reading.said.0.saturating_add(micros)))
    }
}
