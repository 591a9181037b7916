use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Journal,
    journal::{Call, Event, note},
};

/// How long one call waits for another one to finish writing.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// What a service answers: a status in the sense of HTTP, and a body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// 200 for success, 4xx for a definite no, 5xx when the caller cannot know.
    pub status: u16,
    /// The payment, the shipment, or `{"error": ..}`.
    pub body: Value,
}

impl Reply {
    /// Success.
    pub fn ok(body: Value) -> Self {
        Self { status: 200, body }
    }

    /// Anything else, with a reason.
    pub fn error(status: u16, reason: &str) -> Self {
        Self { status, body: json!({ "error": reason }) }
    }
}

/// The services' own book: what they did, which keys they have seen, and how often they were called.
#[derive(Debug, Clone)]
pub struct Book(Arc<Mutex<Connection>>);

impl Book {
    /// Opens the book, or begins one.
    pub fn open(path: &Path) -> rusqlite::Result<Self> {
        let conn = Connection::open(path)?;
        conn.busy_timeout(BUSY_WAIT)?;
        conn.pragma_update(None, "journal_mode", "WAL")?;
        conn.execute_batch(include_str!("book.sql"))?;
        Ok(Self(Arc::new(Mutex::new(conn))))
    }

    /// Notes that a call came in, before anything else is done about it, and says how many came in under this key.
    pub(super) fn count_call(&self, service: &str, path: &str, key: &str, journal: Journal) -> rusqlite::Result<u32> {
        self.write(|tx| {
            let nth = tx.query_row(
                "INSERT INTO calls (service, key, calls) VALUES (?1, ?2, 1)
                 ON CONFLICT (service, key) DO UPDATE SET calls = calls + 1 RETURNING calls",
                params![service, key],
                |row| row.get(0),
            )?;
            if journal == Journal::Calls {
                note(tx, Call { path, key, nth }, Event::Called)?;
            }
            Ok(nth)
        })
    }

    /// Writes down what became of a call, beside what it did.
    pub(super) fn note(&self, call: Call<'_>, event: Event) -> rusqlite::Result<()> {
        self.write(|tx| note(tx, call, event))
    }

    /// Whether the undo of what was asked for under that key has come.
    pub(super) fn is_undone(&self, key: &str) -> rusqlite::Result<bool> {
        let undone = "SELECT EXISTS (SELECT 1 FROM refunds WHERE charge_key = ?1)
                          OR EXISTS (SELECT 1 FROM cancellations WHERE shipment_key = ?1)";
        self.write(|tx| tx.query_row(undone, [key], |row| row.get(0)))
    }

    /// Does what is asked under a key unless that was done before: then the answer is the one of the first time. What
    /// the work says of itself is written down where `call` is given.
    pub(super) fn once(
        &self,
        service: &str,
        key: &str,
        request: &str,
        call: Option<Call<'_>>,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<(Reply, Event)>,
    ) -> rusqlite::Result<Reply> {
        let journal = |tx: &Transaction<'_>, event| call.map_or(Ok(()), |call| note(tx, call, event));
        self.write(|tx| {
            let known: Option<(String, u16, String)> = tx
                .query_row(
                    "SELECT request, status, body FROM answers WHERE service = ?1 AND key = ?2",
                    params![service, key],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .optional()?;
            match known {
                Some((first, _, _)) if first != request => {
                    journal(tx, Event::Again)?;
                    Ok(Reply::error(409, "this idempotency key was used for another request"))
                }
                Some((_, status, body)) => {
                    tx.execute(
                        "UPDATE answers SET replays = replays + 1 WHERE service = ?1 AND key = ?2",
                        params![service, key],
                    )?;
                    journal(tx, Event::Again)?;
                    Ok(Reply { status, body: serde_json::from_str(&body).unwrap_or(Value::String(body)) })
                }
                None => {
                    let (reply, event) = work(tx)?;
                    journal(tx, event)?;
                    tx.execute(
                        "INSERT INTO answers (service, key, request, status, body) VALUES (?1, ?2, ?3, ?4, ?5)",
                        params![service, key, request, reply.status, reply.body.to_string()],
                    )?;
                    Ok(reply)
                }
            }
        })
    }

    /// One transaction on the book.
    pub(super) fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        // A panic under the lock drops the transaction, which undoes it.
        let mut conn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&tx)?;
        tx.commit()?;
        Ok(done)
    }
}
