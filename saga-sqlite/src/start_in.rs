//! Starting a saga in the caller's own transaction.

use async_trait::async_trait;
use rusqlite::Connection;
use saga_core::store::{NewSaga, SagaId, StartIn, Started, StoreError, StoreErrorKind, Timestamp, WorkId};

use crate::changes::insert_work_row;
use crate::definitions;
use crate::error::{misuse, store_error};
use crate::ids::IdCounter;
use crate::sagas;
use crate::store::SqliteStore;

#[async_trait]
impl StartIn for SqliteStore {
    /// On any connection to the store's file: the one that a step or [`write`](SqliteStore::write) is given, or one
    /// that the application opened itself.
    async fn start_in(&self, conn: &mut Connection, saga: NewSaga) -> Result<Started, StoreError> {
        if conn.is_autocommit() {
            return Err(misuse(
                "start_in",
                "the connection is not in a transaction; begin one, or use `SqliteStore::write`",
            ));
        }
        let now = self.now();
        // Nothing here waits, so that the connection is not held across a suspension.
        start(conn, &self.shared().ids, saga, |error| store_error("start_in", error), now)
    }
}

fn start(
    conn: &Connection,
    ids: &IdCounter,
    saga: NewSaga,
    failed: impl Fn(rusqlite::Error) -> StoreError,
    now: Timestamp,
) -> Result<Started, StoreError> {
    if let Some(known) = sagas::by_key(conn, &saga.tenant, &saga.key).map_err(&failed)? {
        return Ok(Started::Known(Box::new(known)));
    }
    let count = u32::try_from(saga.commands.len() + 1).unwrap_or(u32::MAX);
    let ids = ids.take(count).ok_or_else(|| {
        StoreError::new(StoreErrorKind::Unavailable, "start_in", "no ids are left; reserve some and try again")
    })?;
    let mut saga = saga;
    saga.id = SagaId(ids.start);
    for (command, id) in saga.commands.iter_mut().zip(ids.skip(1)) {
        command.id = WorkId(id);
        // The commit is the caller's: a row that is born leased could run before it, or wait long behind it.
        command.lease = None;
    }
    // The caller may commit although this failed, so that no half of it may stay.
    execute(conn, "SAVEPOINT start_saga").map_err(&failed)?;
    let written = write(conn, &saga, now);
    if written.is_err() {
        execute(conn, "ROLLBACK TO start_saga").map_err(&failed)?;
    }
    execute(conn, "RELEASE start_saga").map_err(&failed)?;
    written.map(|()| Started::New).map_err(failed)
}

fn write(conn: &Connection, saga: &NewSaga, now: Timestamp) -> rusqlite::Result<()> {
    let definition = definitions::number_or_new(conn, &saga.definition)?;
    sagas::insert_saga(conn, saga, saga.id, definition, now)?;
    sagas::insert_progress(conn, saga.id, (saga.status, &saga.state), now)?;
    for command in &saga.commands {
        let definition = definitions::number_or_new(conn, &command.definition)?;
        insert_work_row(conn, command, saga.id, definition, now)?;
    }
    Ok(())
}

fn execute(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute(())?;
    Ok(())
}
