//! Makes tombstones of sagas, or deletes them.

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _};
use saga_core::store::{ExpiredSaga, KeptFor, Purged, SagaId, StoreError, StoreErrorKind, Timestamp};

use crate::clock::{micros, plus};
use crate::error::Failure;
use crate::statements::expiry::next_age;
use crate::statements::family::{Relative, family, with_work};
use crate::statements::rows::{limit, signed};
use crate::writer::session::Session;

/// More sagas in one commit would keep others from writing for too long.
pub(crate) const SAGAS_MAX: usize = 200;

/// How many of the oldest messages in the outbox are compared.
const MESSAGES_MAX: usize = 1_000;

/// A message that a saga caused was committed before its last advance, or so long after it at most.
const COMMITTED_WITHIN: Duration = Duration::from_hours(1);

/// A saga whose time is over.
struct Due<'a> {
    saga: &'a ExpiredSaga,
    delete_at: Option<i64>,
    advanced_at: i64,
    family: Vec<Relative>,
}

/// Purges at most [`SAGAS_MAX`] sagas.
pub(crate) fn purge(
    session: &mut Session,
    epoch: u64,
    sagas: &[ExpiredSaga],
    retry_interval: Duration,
) -> Result<Purged, Failure> {
    let (conn, now) = (&session.conn, session.now());
    let current: i64 = conn
        .prepare_cached("SELECT epoch FROM saga_maintenance WHERE name = 'purge'")?
        .query_row((), |row| row.get(0))?;
    if current != signed(epoch) {
        let detail = "another process has the lease of the maintenance task";
        return Err(StoreError::new(StoreErrorKind::Conflict, "purge", detail).into());
    }
    let mut due = Vec::with_capacity(sagas.len());
    for saga in sagas {
        due.extend(look_again(conn, saga, now)?);
    }
    let relatives: HashSet<SagaId> = due.iter().flat_map(|due| &due.family).map(|relative| relative.id).collect();
    let working = with_work(conn, &relatives)?;
    let outbox = OldMessages::read(conn, &due)?;
    let mut purged = Purged::default();
    for due in &due {
        let id = due.saga.id;
        if let Some(why) = kept_for(conn, due, &working, &outbox)? {
            retry_at(conn, id, plus(now, retry_interval))?;
            purged.kept.push((id, why));
        } else if due.delete_at.is_some() {
            make_tombstone(conn, due, now)?;
            purged.tombstones.push(id);
        } else {
            for relative in &due.family {
                delete(conn, due, relative)?;
            }
            purged.deleted.push(id);
        }
    }
    Ok(purged)
}

/// The saga, if it is as it was when it was listed.
fn look_again<'a>(conn: &Connection, saga: &'a ExpiredSaga, now: Timestamp) -> rusqlite::Result<Option<Due<'a>>> {
    let found = conn
        .prepare_cached(
            "SELECT delete_at, advanced_at FROM saga_progress \
             WHERE id = ?1 AND version = ?2 AND ended_at IS NOT NULL AND expires_at <= ?3",
        )?
        .query_row((saga.id.0, signed(saga.version), now.0), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((delete_at, advanced_at)) = found.filter(|(delete_at, _)| next_age(*delete_at) == saga.next) else {
        return Ok(None);
    };
    let family = family(conn, saga.tenant.as_str(), saga.key.as_str())?;
    Ok(Some(Due { saga, delete_at, advanced_at, family }))
}

/// Why a saga must not be taken yet.
fn kept_for(
    conn: &Connection,
    due: &Due<'_>,
    working: &HashSet<SagaId>,
    outbox: &OldMessages,
) -> rusqlite::Result<Option<KeptFor>> {
    if due.family.iter().any(|relative| !relative.has_ended || working.contains(&relative.id)) {
        return Ok(Some(KeptFor::Unfinished));
    }
    let own = due.saga.key.as_str();
    let above = own.match_indices('>').map(|(end, _)| &own[..end]);
    let tenant = due.saga.tenant.as_str();
    let mut keys = due.family.iter().map(|relative| &*relative.key).chain(above);
    let mut letters = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM saga_dead_letters WHERE tenant = ?1 AND saga_key = ?2 AND state = 'open')",
    )?;
    for key in keys.clone() {
        if letters.query_row((tenant, key), |row| row.get(0))? {
            return Ok(Some(KeptFor::DeadLetter));
        }
    }
    let is_named = outbox.are_many || keys.any(|key| outbox.named.contains(&(tenant.to_owned(), key.to_owned())));
    Ok(is_named.then_some(KeptFor::Outbox))
}

/// What the oldest messages in the outbox say.
struct OldMessages {
    /// More of them are older than a saga than are compared.
    are_many: bool,
    /// The tenants and keys that they name.
    named: HashSet<(String, String)>,
}

impl OldMessages {
    fn read(conn: &Connection, due: &[Due<'_>]) -> rusqlite::Result<Self> {
        let until =
            due.iter().map(|due| due.advanced_at).max().unwrap_or(i64::MIN).saturating_add(micros(COMMITTED_WITHIN));
        // Headers that this version cannot read hold up no purge.
        let mut statement = conn.prepare_cached(
            "SELECT tenant, CASE WHEN json_valid(headers) THEN json_extract(headers, '$.\"saga-cause\"') END, committed_at \
             FROM saga_outbox ORDER BY seq LIMIT ?1",
        )?;
        let mut rows = statement.query([limit(MESSAGES_MAX)])?;
        let (mut older, mut named) = (0, HashSet::new());
        while let Some(row) = rows.next()? {
            older += usize::from(row.get::<_, i64>(2)? <= until);
            if let Some(key) = row.get::<_, Option<String>>(1)? {
                named.insert((row.get(0)?, key));
            }
        }
        Ok(Self { are_many: older >= MESSAGES_MAX, named })
    }
}

/// The latest time that is stored. Older versions stored the largest number of all, to which nothing can be added.
fn latest(now: Timestamp) -> i64 {
    plus(now, Duration::MAX).0
}

fn retry_at(conn: &Connection, saga: SagaId, at: Timestamp) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE saga_progress SET expires_at = ?2, delete_at = ?2 + (min(delete_at, ?3) - expires_at) WHERE id = ?1",
    )?
    .execute((saga.0, at.0, latest(at)))?;
    Ok(())
}

/// Takes all but the key away. What operators did with a sub-saga becomes part of the saga's history.
fn make_tombstone(conn: &Connection, due: &Due<'_>, now: Timestamp) -> rusqlite::Result<()> {
    let id = due.saga.id;
    for relative in due.family.iter().filter(|relative| relative.id != id) {
        conn.prepare_cached("UPDATE saga_history SET saga = ?2 WHERE saga = ?1 AND kind = 'operator'")?
            .execute((relative.id.0, id.0))?;
        delete(conn, due, relative)?;
    }
    delete_records(conn, due, due.saga.key.as_str())?;
    conn.prepare_cached("DELETE FROM saga_history WHERE saga = ?1 AND kind <> 'operator'")?.execute([id.0])?;
    conn.prepare_cached("UPDATE saga_sagas SET input = x'' WHERE id = ?1")?.execute([id.0])?;
    conn.prepare_cached(
        "UPDATE saga_progress SET state = x'', expires_at = ?2 + (min(delete_at, ?3) - expires_at), delete_at = NULL, \
         hosts = NULL WHERE id = ?1",
    )?
    // However late it is made, a tombstone is kept for as long as another one: its hosts are told only now.
    .execute((id.0, now.0, latest(now)))?;
    Ok(())
}

fn delete(conn: &Connection, due: &Due<'_>, relative: &Relative) -> rusqlite::Result<()> {
    delete_records(conn, due, &relative.key)?;
    conn.prepare_cached("DELETE FROM saga_history WHERE saga = ?1")?.execute([relative.id.0])?;
    conn.prepare_cached("DELETE FROM saga_progress WHERE id = ?1")?.execute([relative.id.0])?;
    conn.prepare_cached("DELETE FROM saga_sagas WHERE id = ?1")?.execute([relative.id.0])?;
    Ok(())
}

fn delete_records(conn: &Connection, due: &Due<'_>, key: &str) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM saga_records WHERE tenant = ?1 AND key = ?2")?
        .execute((due.saga.tenant.as_str(), key))?;
    Ok(())
}
