//! Requests that take effect once.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _};
use saga_core::store::{Admission, IdempotencyKey, IdempotencyKeys, KeyedBody, KeyedRequest, StoreError, Timestamp};
use tokio::sync::oneshot;

use crate::error::writer_ended;
use crate::keyed_job::{Keyed, OPERATION};
use crate::rows::{limit, signed, unsigned};
use crate::store::SqliteStore;

#[async_trait]
impl IdempotencyKeys for SqliteStore {
    /// The writer polls the body on its own thread and runs no other call meanwhile, so the body must not wait for
    /// anything slow. It shares its commit with other calls, and may run several times.
    async fn run_once(
        &self,
        request: Option<KeyedRequest>,
        body: Box<dyn KeyedBody<Connection>>,
    ) -> Result<Admission<()>, StoreError> {
        let _held = self.shared().clock.hold();
        let (reply, answer) = oneshot::channel();
        self.send(OPERATION, Box::new(Keyed::new(request, body, reply)))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended(OPERATION)))
    }

    async fn claim_key(&self, request: &KeyedRequest, lease_ttl: Duration) -> Result<Admission<u64>, StoreError> {
        let request = request.clone();
        self.call("claim_key", move |session| {
            let now = session.now();
            let answer = look_up(&session.conn, &request, now)?;
            if let Admission::Granted(epoch) = answer {
                keep(&session.conn, &request, (epoch, now), Kept::Leased(after(now, lease_ttl)))?;
            }
            Ok(answer)
        })
        .await
    }

    async fn complete_key(&self, key: &IdempotencyKey, epoch: u64, response: &[u8]) -> Result<bool, StoreError> {
        let (key, response) = (key.clone(), response.to_vec());
        self.call("complete_key", move |session| {
            let sql = "UPDATE saga_idempotency_keys SET leased_until = NULL, response = ?5 \
                 WHERE tenant = ?1 AND principal = ?2 AND key = ?3 AND epoch = ?4 AND response IS NULL";
            let (tenant, principal, text) = columns(&key);
            let values = (tenant, principal, text, signed(epoch), &response);
            Ok(session.conn.prepare_cached(sql)?.execute(values)? == 1)
        })
        .await
    }

    async fn release_key(&self, key: &IdempotencyKey, epoch: u64) -> Result<bool, StoreError> {
        let key = key.clone();
        self.call("release_key", move |session| {
            let sql = "DELETE FROM saga_idempotency_keys \
                 WHERE tenant = ?1 AND principal = ?2 AND key = ?3 AND epoch = ?4 AND response IS NULL";
            let (tenant, principal, text) = columns(&key);
            Ok(session.conn.prepare_cached(sql)?.execute((tenant, principal, text, signed(epoch)))? == 1)
        })
        .await
    }

    async fn delete_expired_keys(&self, limit_of_rows: usize) -> Result<u64, StoreError> {
        self.call("delete_expired_keys", move |session| {
            let sql = "DELETE FROM saga_idempotency_keys WHERE rowid IN (SELECT rowid FROM saga_idempotency_keys \
                 WHERE expires_at <= ?1 AND (leased_until IS NULL OR leased_until <= ?1) ORDER BY expires_at LIMIT ?2)";
            let deleted = session.conn.prepare_cached(sql)?.execute((session.now().0, limit(limit_of_rows)))?;
            Ok(deleted as u64)
        })
        .await
    }
}

/// What a row says of its request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kept<'a> {
    Leased(Timestamp),
    Answered(&'a [u8]),
}

/// The answer to a request by what is kept; a granted one with its epoch.
pub(crate) fn look_up(conn: &Connection, request: &KeyedRequest, now: Timestamp) -> rusqlite::Result<Admission<u64>> {
    let sql = "SELECT fingerprint, epoch, coalesce(leased_until, 0), response, expires_at FROM saga_idempotency_keys \
         WHERE tenant = ?1 AND principal = ?2 AND key = ?3";
    let mut statement = conn.prepare_cached(sql)?;
    let read = |row: &rusqlite::Row<'_>| {
        let (fingerprint, leased_until): ([u8; 32], i64) = (row.get(0)?, row.get(2)?);
        let (response, expires_at): (Option<Vec<u8>>, i64) = (row.get(3)?, row.get(4)?);
        // Above every epoch that the key ever had, also if it was deleted meanwhile.
        let next = now.0.unsigned_abs().max(unsigned(row, 1)? + 1);
        let (is_leased, is_over) = (leased_until > now.0, expires_at <= now.0);
        Ok(match response {
            _ if is_over && !is_leased => Admission::Granted(next),
            _ if fingerprint != request.fingerprint => Admission::OtherRequest,
            Some(response) => Admission::Replay(response),
            None if is_leased => Admission::InFlight,
            None => Admission::Granted(next),
        })
    };
    let kept = statement.query_row(columns(&request.key), read).optional()?;
    Ok(kept.unwrap_or(Admission::Granted(now.0.unsigned_abs())))
}

/// Writes the row of a request.
pub(crate) fn keep(
    conn: &Connection,
    request: &KeyedRequest,
    (epoch, now): (u64, Timestamp),
    kept: Kept<'_>,
) -> rusqlite::Result<()> {
    let (tenant, principal, key) = columns(&request.key);
    let (leased_until, response) = match kept {
        Kept::Leased(until) => (Some(until.0), None),
        Kept::Answered(response) => (None, Some(response)),
    };
    let expires_at = after(now, request.ttl).0;
    let sql = "INSERT OR REPLACE INTO saga_idempotency_keys \
         (tenant, principal, key, fingerprint, epoch, leased_until, response, expires_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let values = (tenant, principal, key, &request.fingerprint, signed(epoch), leased_until, response, expires_at);
    conn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn columns(key: &IdempotencyKey) -> (&str, &str, &str) {
    (key.tenant().as_str(), key.principal(), key.as_str())
}

fn after(now: Timestamp, duration: Duration) -> Timestamp {
    Timestamp(now.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
}
