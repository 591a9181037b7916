//! The rows of requests that take effect once.

use rusqlite::{Connection, OptionalExtension as _};
use saga_core::store::{Admission, IdempotencyKey, KeyedRequest, Timestamp};

use crate::clock::plus;
use crate::statements::rows::{signed, unsigned};

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
    let expires_at = plus(now, request.ttl).0;
    let sql = "INSERT OR REPLACE INTO saga_idempotency_keys \
         (tenant, principal, key, fingerprint, epoch, leased_until, response, expires_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let values = (tenant, principal, key, &request.fingerprint, signed(epoch), leased_until, response, expires_at);
    conn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

pub(crate) fn columns(key: &IdempotencyKey) -> (&str, &str, &str) {
    (key.tenant().as_str(), key.principal(), key.as_str())
}
