//! Inserts work rows.

use rusqlite::Connection;
use saga_core::store::{NewWork, SagaId, Timestamp};

use crate::clock::plus;
use crate::writer::session::Session;

/// Inserts a command through the writer, which caches the number of its definition.
pub(crate) fn insert_work(session: &mut Session, new: &NewWork, saga: SagaId, now: Timestamp) -> rusqlite::Result<()> {
    let definition = session.definitions.number(&session.conn, &new.definition)?;
    if let Some(lease) = new.lease {
        session.note_owner(lease.owner);
    }
    insert_work_row(&session.conn, new, saga, definition, now)
}

/// Inserts a command on any connection.
pub(crate) fn insert_work_row(
    conn: &Connection,
    new: &NewWork,
    saga: SagaId,
    definition: i64,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let owner = new.lease.map(|lease| lease.owner.0);
    let leased_until = new.lease.map(|lease| plus(now, lease.ttl).0);
    conn.prepare_cached(
        "INSERT INTO saga_work (id, saga, tenant, key, kind, step, definition, epoch, due_at, owner, leased_until, \
         attempts, maybe, suspect, payload, retrying_since, error) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?9, ?10, ?12, 0, 0, ?11, ?13, ?14)",
    )?
    .execute((
        new.id.0,
        saga.0,
        new.tenant.as_str(),
        new.key.as_str(),
        new.kind.as_str(),
        new.step.as_str(),
        definition,
        plus(now, new.due_in).0,
        owner,
        leased_until,
        new.payload.as_deref(),
        new.tried.as_ref().map_or(0, |tried| tried.attempts),
        new.tried.as_ref().map(|_| now.0),
        new.tried.as_ref().map(|tried| tried.error.as_str()),
    ))?;
    Ok(())
}
