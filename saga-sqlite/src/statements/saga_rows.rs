//! The rows of a saga: how they are inserted and found.

use rusqlite::{Connection, OptionalExtension as _};
use saga_core::key::{Key, Tenant};
use saga_core::store::{NewSaga, SagaId, SagaRow, Started, Status, Timestamp};

use crate::error::{Failure, misuse};
use crate::statements::expiry::Dates;
use crate::statements::rows::{self, FromRow, select_sagas};
use crate::statements::work_rows::insert_work;
use crate::writer::session::Session;

/// The progress of a saga before a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CurrentProgress {
    pub(crate) status: Status,
    pub(crate) version: u64,
    /// Whether this transaction starts the saga, so that it has no progress row yet.
    pub(crate) is_new: bool,
}

/// The progress of a saga, if there is one.
pub(crate) fn known_progress(conn: &Connection, saga: SagaId) -> rusqlite::Result<Option<CurrentProgress>> {
    conn.prepare_cached("SELECT status, version FROM saga_progress WHERE id = ?1")?
        .query_row([saga.0], |row| {
            Ok(CurrentProgress { status: rows::status(row, 0)?, version: rows::unsigned(row, 1)?, is_new: false })
        })
        .optional()
}

/// The progress of a saga that must exist.
pub(crate) fn current_progress(
    conn: &Connection,
    operation: &'static str,
    saga: SagaId,
) -> Result<CurrentProgress, Failure> {
    let progress = known_progress(conn, saga)?;
    progress.ok_or_else(|| misuse(operation, format!("there is no saga {}", saga.0)).into())
}

/// A saga that must exist.
pub(crate) fn saga_by_id(conn: &Connection, saga: SagaId) -> rusqlite::Result<SagaRow> {
    conn.prepare_cached(select_sagas!("WHERE s.id = ?1"))?.query_row([saga.0], SagaRow::from_row)
}

/// The saga of that key.
pub(crate) fn by_key(conn: &Connection, tenant: &Tenant, key: &Key) -> rusqlite::Result<Option<SagaRow>> {
    conn.prepare_cached(select_sagas!("WHERE s.tenant = ?1 AND s.key = ?2"))?
        .query_row((tenant.as_str(), key.as_str()), SagaRow::from_row)
        .optional()
}

/// Inserts the immutable part of a saga; answers false, without an error, when the key is taken.
pub(crate) fn insert_saga(
    conn: &Connection,
    saga: &NewSaga,
    id: SagaId,
    definition: i64,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    let inserted = conn
        .prepare_cached(
            "INSERT INTO saga_sagas (id, tenant, key, definition, digest, input, input_hash, started_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (tenant, key) DO NOTHING",
        )?
        .execute((
            id.0,
            saga.tenant.as_str(),
            saga.key.as_str(),
            definition,
            saga.digest,
            &*saga.input,
            &*saga.input_hash,
            now.0,
        ))?;
    Ok(inserted == 1)
}

/// Inserts the progress of a new saga.
pub(crate) fn insert_progress(conn: &Connection, id: SagaId, saga: &NewSaga, now: Timestamp) -> rusqlite::Result<()> {
    let dates = Dates::of_start(saga, now);
    conn.prepare_cached(
        "INSERT INTO saga_progress (id, status, version, state, advanced_at, ended_at, expires_at, delete_at, hosts) \
         VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute((
        id.0,
        saga.status.as_str(),
        &*saga.state,
        now.0,
        saga.status.is_ended().then_some(now.0),
        dates.expires_at,
        dates.delete_at,
        dates.hosts,
    ))?;
    Ok(())
}

pub(crate) fn start(session: &mut Session, saga: &NewSaga) -> Result<Started, Failure> {
    let now = session.now();
    let definition = session.definitions.number(&session.conn, &saga.definition)?;
    if !insert_saga(&session.conn, saga, saga.id, definition, now)? {
        let known = by_key(&session.conn, &saga.tenant, &saga.key)?;
        return known
            .map(|known| Started::AlreadyExists(Box::new(known)))
            .ok_or(Failure::Sql(rusqlite::Error::QueryReturnedNoRows));
    }
    insert_progress(&session.conn, saga.id, saga, now)?;
    for command in &saga.commands {
        insert_work(session, command, command.saga, now)?;
    }
    Ok(Started::New)
}
