//! Starts a saga, and publishes an event, in the caller's own transaction.

use async_trait::async_trait;
use rusqlite::Connection;
use saga_core::store::{NewMessage, NewSaga, SagaId, StartIn, Started, StoreError, StoreErrorKind, Timestamp, WorkId};

use crate::error::{misuse, store_error};
use crate::ids::IdCounter;
use crate::statements::changes::insert_messages;
use crate::statements::definition_numbers::number_or_new;
use crate::statements::published::count;
use crate::statements::saga_rows;
use crate::statements::work_rows::insert_work_row;
use crate::store::store::SqliteStore;

#[async_trait]
impl StartIn for SqliteStore {
    /// On any connection to the store's file: the one that a step or [`write`](SqliteStore::write) is given, or one
    /// that the application opened itself.
    async fn start_in(&self, conn: &mut Connection, saga: NewSaga) -> Result<Started, StoreError> {
        require_transaction(conn, "start_in")?;
        let now = self.now();
        // Nothing here waits, so the connection is not held across an await.
        start(conn, &self.shared().ids, saga, |error| store_error("start_in", error), now)
    }

    /// On any connection that [`start_in`](Self::start_in) takes.
    async fn publish_in(&self, conn: &mut Connection, message: NewMessage) -> Result<(), StoreError> {
        require_transaction(conn, "publish_in")?;
        let now = self.now();
        let failed = |error| store_error("publish_in", error);
        in_savepoint(conn, || publish(conn, message, now)).map_err(failed)?.map_err(failed)
    }
}

fn require_transaction(conn: &Connection, operation: &'static str) -> Result<(), StoreError> {
    if conn.is_autocommit() {
        let detail = "the connection is not in a transaction; begin one, or use `SqliteStore::write`";
        return Err(misuse(operation, detail));
    }
    Ok(())
}

/// The caller may commit although this failed, so a failed write must leave nothing.
fn in_savepoint<T>(
    conn: &Connection,
    write: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<rusqlite::Result<T>> {
    execute(conn, "SAVEPOINT in_callers")?;
    let written = write();
    if written.is_err() {
        execute(conn, "ROLLBACK TO in_callers")?;
    }
    execute(conn, "RELEASE in_callers")?;
    Ok(written)
}

/// Only one transaction writes at a time, so the counter needs no lock.
fn publish(conn: &Connection, mut message: NewMessage, now: Timestamp) -> rusqlite::Result<()> {
    let position = count(conn, &message, now)?;
    message.position = position.unsigned_abs();
    insert_messages(conn, &[message], now)
}

fn start(
    conn: &Connection,
    ids: &IdCounter,
    saga: NewSaga,
    failed: impl Fn(rusqlite::Error) -> StoreError,
    now: Timestamp,
) -> Result<Started, StoreError> {
    if let Some(known) = saga_rows::by_key(conn, &saga.tenant, &saga.key).map_err(&failed)? {
        return Ok(Started::AlreadyExists(Box::new(known)));
    }
    let count = u32::try_from(saga.commands.len() + 1).unwrap_or(u32::MAX);
    let ids = ids.take(count).ok_or_else(|| {
        StoreError::new(StoreErrorKind::Unavailable, "start_in", "no ids are left; reserve some and try again")
    })?;
    let mut saga = saga;
    saga.id = SagaId(ids.start);
    for (command, id) in saga.commands.iter_mut().zip(ids.skip(1)) {
        command.id = WorkId(id);
        // The caller commits later: a row that is inserted leased could run before that, or wait long after it.
        command.lease = None;
    }
    let written = in_savepoint(conn, || write(conn, &saga, now)).map_err(&failed)?;
    written.map(|()| Started::New).map_err(failed)
}

fn write(conn: &Connection, saga: &NewSaga, now: Timestamp) -> rusqlite::Result<()> {
    let definition = number_or_new(conn, &saga.definition)?;
    saga_rows::insert_saga(conn, saga, saga.id, definition, now)?;
    saga_rows::insert_progress(conn, saga.id, saga, now)?;
    for command in &saga.commands {
        let definition = number_or_new(conn, &command.definition)?;
        insert_work_row(conn, command, saga.id, definition, now)?;
    }
    Ok(())
}

fn execute(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute(())?;
    Ok(())
}
