//! Companies outside, simulated in memory. Replace them with clients of your own.
//!
//! They honour idempotency keys: a key is booked once, however often it is asked for. The destination decides how they
//! behave, so that a test can choose.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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

/// What is booked, by key. A key that was cancelled is never booked any more.
type Book = Arc<Mutex<BTreeMap<String, Entry>>>;

#[derive(Debug, Clone, Default)]
struct Entry {
    calls: u32,
    is_cancelled: bool,
}

/// All airlines.
#[derive(Debug, Clone, Default)]
pub struct Airline(Book);

impl Airline {
    /// Books a flight, once for a key.
    ///
    /// # Errors
    /// When there is no such flight.
    pub async fn book(&self, key: &str, leg: &Leg) -> Result<Ticket, StepError> {
        if leg.to == NO_FLIGHTS {
            return Err(StepError::reject(format!("no flight goes to {}", leg.to)));
        }
        let calls = book(&self.0, key)?;
        if leg.to == NO_ANSWER && calls == 1 {
            // The answer is lost: the runtime sees a time-out.
            std::future::pending::<()>().await;
        }
        Ok(ticket(key))
    }

    /// The ticket that was booked with this key.
    ///
    /// # Errors
    /// None here; a real airline may be away.
    pub async fn find(&self, key: &str) -> Result<Option<Ticket>, StepError> {
        Ok(is_booked(&self.0, key).then(|| ticket(key)))
    }

    /// Cancels the flight of this key, and blocks the key.
    ///
    /// # Errors
    /// None here; a real airline may be away.
    pub async fn cancel(&self, key: &str) -> Result<(), StepError> {
        cancel(&self.0, key);
        Ok(())
    }

    /// The keys of the flights that are booked.
    pub fn booked(&self) -> Vec<String> {
        booked(&self.0)
    }

    /// How often this key was asked for.
    pub fn calls(&self, key: &str) -> u32 {
        lock(&self.0).get(key).map_or(0, |entry| entry.calls)
    }
}

fn ticket(key: &str) -> Ticket {
    Ticket { number: format!("ticket of {key}"), cents: FLIGHT_CENTS }
}

/// The insurer of cars.
#[derive(Debug, Clone, Default)]
pub struct Insurer(Book);

impl Insurer {
    /// Insures a car, once for a key.
    ///
    /// # Errors
    /// When the key was cancelled.
    pub async fn insure(&self, key: &str, plate: &str) -> Result<String, StepError> {
        book(&self.0, key)?;
        Ok(format!("policy of {plate}"))
    }

    /// Ends the insurance of this key, and blocks the key.
    ///
    /// # Errors
    /// None here; a real insurer may be away.
    pub async fn end(&self, key: &str) -> Result<(), StepError> {
        cancel(&self.0, key);
        Ok(())
    }

    /// The keys of the insurances.
    pub fn booked(&self) -> Vec<String> {
        booked(&self.0)
    }
}

/// The mail server. It drops a mail whose id it has seen.
#[derive(Debug, Clone, Default)]
pub struct Mail(Arc<Mutex<BTreeMap<String, String>>>);

impl Mail {
    /// Sends a mail.
    ///
    /// # Errors
    /// None here; a real server may be away.
    pub async fn send(&self, message_id: &str, to: &str, text: &str) -> Result<(), StepError> {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sent.entry(message_id.to_owned()).or_insert_with(|| format!("{to}: {text}"));
        Ok(())
    }

    /// The mails.
    pub fn sent(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// Books a key, and returns how often it was asked for.
fn book(book: &Book, key: &str) -> Result<u32, StepError> {
    let mut book = lock(book);
    let entry = book.entry(key.to_owned()).or_default();
    if entry.is_cancelled {
        return Err(StepError::reject("this key was cancelled"));
    }
    entry.calls += 1;
    Ok(entry.calls)
}

fn cancel(book: &Book, key: &str) {
    lock(book).entry(key.to_owned()).or_default().is_cancelled = true;
}

fn is_booked(book: &Book, key: &str) -> bool {
    lock(book).get(key).is_some_and(|entry| entry.calls > 0 && !entry.is_cancelled)
}

fn booked(book: &Book) -> Vec<String> {
    let keys: Vec<String> = lock(book).keys().cloned().collect();
    keys.into_iter().filter(|key| is_booked(book, key)).collect()
}

fn lock(book: &Book) -> std::sync::MutexGuard<'_, BTreeMap<String, Entry>> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}
