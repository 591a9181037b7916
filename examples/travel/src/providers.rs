//! Companies outside, simulated in memory. Replace them with clients of your own.
//!
//! They honour idempotency keys: a key is booked once, however often it is asked for. The destination decides how they
//! behave, so that a test can choose.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saga_core::StepError;
use serde::{Deserialize, Serialize};

use crate::trip::Leg;

/// There is no flight to this place.
pub const NO_FLIGHTS: &str = "Atlantis";
/// The airline books a flight to this place, and does not answer the first call.
pub const NO_ANSWER: &str = "Limbo";

const FLIGHT_CENTS: i64 = 12_000;

/// A ticket for a flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    pub number: String,
    pub cents: i64,
}

/// The companies: airlines, the insurer of cars, and a mail server that drops a mail whose id it has seen.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    pub airline: Book,
    pub insurer: Book,
    pub mail: Book,
}

impl Providers {
    /// Books a flight, once for a key.
    pub async fn book_flight(&self, key: &str, leg: &Leg) -> Result<Ticket, StepError> {
        if leg.to == NO_FLIGHTS {
            return Err(StepError::reject(format!("no flight goes to {}", leg.to)));
        }
        if self.airline.book(key)? == 1 && leg.to == NO_ANSWER {
            // The answer is lost: the runtime sees a time-out.
            std::future::pending::<()>().await;
        }
        Ok(ticket(key))
    }

    /// The ticket that was booked with this key.
    pub fn find_flight(&self, key: &str) -> Option<Ticket> {
        self.airline.booked().iter().any(|booked| booked == key).then(|| ticket(key))
    }
}

fn ticket(key: &str) -> Ticket {
    Ticket { number: format!("ticket of {key}"), cents: FLIGHT_CENTS }
}

/// What a company has booked, by key.
#[derive(Debug, Clone, Default)]
pub struct Book(Arc<Mutex<BTreeMap<String, Entry>>>);

#[derive(Debug, Clone, Default)]
struct Entry {
    calls: u32,
    is_cancelled: bool,
}

impl Book {
    /// Books a key, and returns how often it was asked for.
    pub fn book(&self, key: &str) -> Result<u32, StepError> {
        let mut entries = self.lock();
        let entry = entries.entry(key.to_owned()).or_default();
        if entry.is_cancelled {
            return Err(StepError::reject("this key was cancelled"));
        }
        entry.calls += 1;
        Ok(entry.calls)
    }

    /// Undoes what was booked with this key, and blocks the key.
    pub fn cancel(&self, key: &str) {
        self.lock().entry(key.to_owned()).or_default().is_cancelled = true;
    }

    /// The keys that are booked.
    pub fn booked(&self) -> Vec<String> {
        let entries = self.lock();
        entries.iter().filter(|(_, entry)| !entry.is_cancelled).map(|(key, _)| key.clone()).collect()
    }

    /// How often this key was asked for.
    pub fn calls(&self, key: &str) -> u32 {
        self.lock().get(key).map_or(0, |entry| entry.calls)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
