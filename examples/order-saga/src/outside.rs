//! A payment gateway and a carrier, simulated for this example. Replace them with clients of your real services.
//!
//! They keep their own journal, and do not know the shop. They honour idempotency keys, as Stripe does: the same key is the
//! same charge. They decline some cards, refuse some parcels, and sometimes fail before or *after* they took effect. The key
//! of a call decides all of this, so a run can be repeated.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use saga_core::StepError;
use serde::{Deserialize, Serialize};

/// The shop's account at the payment gateway.
#[derive(Clone)]
pub(crate) struct Gateway(pub(crate) Book);

/// The shop's account at the carrier.
#[derive(Clone)]
pub(crate) struct Carrier(pub(crate) Book);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Payment {
    pub(crate) payment_id: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Shipment {
    pub(crate) shipment_id: i64,
    pub(crate) price_cents: i64,
}

impl Gateway {
    /// Charges a card, once for one key.
    pub(crate) async fn charge(&self, key: &str, cents: i64) -> Result<Payment, StepError> {
        if percent("card", key) < 8 {
            return Err(StepError::reject("card declined"));
        }
        let payment_id = self.0.call(key, |tx| book(tx, key, cents)).await?;
        Ok(Payment { payment_id })
    }

    /// Refunds the charge with another key, and blocks that key from now on.
    pub(crate) async fn refund(&self, key: &str, charge_key: &str) -> Result<(), StepError> {
        self.0.call(key, |tx| undo(tx, charge_key)).await
    }
}

impl Carrier {
    /// Books a shipment, once for one key.
    pub(crate) async fn book(&self, key: &str, country: &str, quoted_cents: i64) -> Result<Shipment, StepError> {
        if percent("parcel", key) < 8 {
            return Err(StepError::reject(format!("no parcels taken: {country}")));
        }
        let price_cents = quoted_cents.saturating_mul(60 + percent("price", key)) / 100;
        let shipment_id = self.0.call(key, |tx| book(tx, key, price_cents)).await?;
        Ok(Shipment { shipment_id, price_cents })
    }

    /// Cancels the shipment with another key, and blocks that key from now on.
    pub(crate) async fn cancel(&self, key: &str, shipment_key: &str) -> Result<(), StepError> {
        self.0.call(key, |tx| undo(tx, shipment_key)).await
    }
}

/// The journal of the services, in its own file.
#[derive(Clone)]
pub(crate) struct Book(Arc<Mutex<Connection>>);

impl Book {
    pub(crate) fn open(file: &Path) -> rusqlite::Result<Self> {
        let conn = Connection::open(file)?;
        conn.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = NORMAL;
             CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, calls INTEGER NOT NULL) STRICT;
             CREATE TABLE IF NOT EXISTS bookings (
                 id     INTEGER PRIMARY KEY,
                 key    TEXT    NOT NULL UNIQUE,
                 cents  INTEGER NOT NULL,
                 undone INTEGER NOT NULL DEFAULT FALSE
             ) STRICT;",
        )?;
        Ok(Self(Arc::new(Mutex::new(conn))))
    }

    /// The number of calls that repeated an earlier one.
    pub(crate) fn repeated_calls(&self) -> rusqlite::Result<i64> {
        let conn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        conn.query_one("SELECT coalesce(sum(calls - 1), 0) FROM calls", [], |row| row.get(0))
    }

    /// One call, with its simulated failures.
    async fn call<T>(
        &self,
        key: &str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StepError>,
    ) -> Result<T, StepError> {
        let nth = self.transaction(|tx| {
            let count = "INSERT INTO calls VALUES (?1, 1) ON CONFLICT DO UPDATE SET calls = calls + 1 RETURNING calls";
            Ok(tx.query_one(count, [key], |row| row.get::<_, i64>(0))?)
        })?;
        let luck = percent(&format!("call {nth}"), key);
        tokio::time::sleep(Duration::from_millis(luck.unsigned_abs() / 5)).await;
        if luck < 5 {
            return Err(StepError::retry("503: the service is away"));
        }
        let done = self.transaction(work)?;
        if luck >= 95 { Err(StepError::retry("500: the service broke down")) } else { Ok(done) }
    }

    fn transaction<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, StepError>) -> Result<T, StepError> {
        let mut conn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&tx)?;
        tx.commit()?;
        Ok(done)
    }
}

fn book(tx: &Transaction<'_>, key: &str, cents: i64) -> Result<i64, StepError> {
    tx.execute("INSERT INTO bookings (key, cents) VALUES (?1, ?2) ON CONFLICT DO NOTHING", params![key, cents])?;
    let known = "SELECT id, undone FROM bookings WHERE key = ?1";
    match tx.query_one(known, [key], |row| Ok((row.get(0)?, row.get(1)?)))? {
        (_, true) => Err(StepError::reject("this key was undone, so nothing is done under it")),
        (id, false) => Ok(id),
    }
}

fn undo(tx: &Transaction<'_>, key: &str) -> Result<(), StepError> {
    let undone =
        "INSERT INTO bookings (key, cents, undone) VALUES (?1, 0, TRUE) ON CONFLICT DO UPDATE SET undone = TRUE";
    tx.execute(undone, [key])?;
    Ok(())
}

/// A number from 0 to 99, derived from the key.
fn percent(what: &str, key: &str) -> i64 {
    let mut hasher = DefaultHasher::new();
    (what, key).hash(&mut hasher);
    (hasher.finish() % 100).cast_signed()
}
