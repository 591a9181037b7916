//! The migration of a saga to another version of its definition.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension as _};
use saga_core::store::{Applied, MemberId, Miss, SagaMigration, StepId, Timestamp, WorkId};

use crate::error::Failure;
use crate::statements::changes::{insert_history, insert_record};
use crate::statements::rows::signed;
use crate::statements::saga_rows::{current_progress, saga_by_id};
use crate::writer::session::Session;

const OPERATION: &str = "migrate";

/// Migrates a saga. All conditions are checked before anything is written.
pub(crate) fn migrate(session: &mut Session, moved: &SagaMigration) -> Result<Applied, Failure> {
    let now = session.now();
    if let Some(work) = leased_row(session, moved, now)? {
        return Ok(Err(Miss::Work(work)));
    }
    if let Some(step) = conflicting_record(&session.conn, moved)? {
        return Ok(Err(Miss::Record(step)));
    }
    if current_progress(&session.conn, OPERATION, moved.saga)?.version != moved.expected {
        return Ok(Err(Miss::Saga(Box::new(saga_by_id(&session.conn, moved.saga)?))));
    }
    let definition = session.definitions.number(&session.conn, &moved.definition)?;
    let conn = &session.conn;
    conn.prepare_cached("UPDATE saga_sagas SET definition = ?2, digest = ?3 WHERE id = ?1")?.execute((
        moved.saga.0,
        definition,
        moved.digest,
    ))?;
    conn.prepare_cached("UPDATE saga_progress SET state = ?2, version = ?3, advanced_at = ?4 WHERE id = ?1")?
        .execute((moved.saga.0, &*moved.state, signed(moved.expected + 1), now.0))?;
    for work in &moved.withdrawn {
        conn.prepare_cached("DELETE FROM saga_work WHERE id = ?1")?.execute([work.0])?;
    }
    conn.prepare_cached(
        "UPDATE saga_work SET definition = ?2, epoch = epoch + 1, \
         waiting = CASE WHEN waiting = epoch THEN epoch + 1 END WHERE saga = ?1",
    )?
    .execute((moved.saga.0, definition))?;
    rewrite_records(conn, moved)?;
    for record in &moved.records {
        insert_record(conn, record, now)?;
    }
    for entry in &moved.history {
        insert_history(conn, entry, now)?;
    }
    Ok(Ok(()))
}

/// A row of the saga that a living member has leased.
fn leased_row(session: &Session, moved: &SagaMigration, now: Timestamp) -> rusqlite::Result<Option<WorkId>> {
    let mut statement = session.conn.prepare_cached(
        "SELECT id, owner FROM saga_work WHERE saga = ?1 AND owner IS NOT NULL AND leased_until > ?2 ORDER BY id",
    )?;
    let mut rows = statement.query((moved.saga.0, now.0))?;
    while let Some(row) = rows.next()? {
        if session.shared.members.is_alive(MemberId(row.get(1)?), now) {
            return Ok(Some(WorkId(row.get(0)?)));
        }
    }
    Ok(None)
}

fn conflicting_record(conn: &Connection, moved: &SagaMigration) -> rusqlite::Result<Option<StepId>> {
    let left: HashSet<&StepId> = moved.rewritten.iter().map(|record| &record.from).collect();
    for record in &moved.rewritten {
        if !has_record(conn, moved, &record.from)? {
            return Ok(Some(record.from.clone()));
        }
    }
    let renamed = moved.rewritten.iter().filter(|record| record.from != record.to).map(|record| &record.to);
    for step in renamed.chain(moved.records.iter().map(|record| &record.step)) {
        if !left.contains(step) && has_record(conn, moved, step)? {
            return Ok(Some(step.clone()));
        }
    }
    Ok(None)
}

fn has_record(conn: &Connection, moved: &SagaMigration, step: &StepId) -> rusqlite::Result<bool> {
    let found = conn
        .prepare_cached("SELECT 1 FROM saga_records WHERE tenant = ?1 AND key = ?2 AND step = ?3")?
        .query_row((moved.tenant.as_str(), moved.key.as_str(), step.as_str()), |_| Ok(()))
        .optional()?;
    Ok(found.is_some())
}

/// In two passes, since a record may get the name that another record had.
fn rewrite_records(conn: &Connection, moved: &SagaMigration) -> rusqlite::Result<()> {
    let mut rename =
        conn.prepare_cached("UPDATE saga_records SET step = ?4 WHERE tenant = ?1 AND key = ?2 AND step = ?3")?;
    let (tenant, key) = (moved.tenant.as_str(), moved.key.as_str());
    let between = |step: &StepId| format!("{step} moves");
    for record in &moved.rewritten {
        rename.execute((tenant, key, record.from.as_str(), between(&record.from)))?;
    }
    let mut give = conn.prepare_cached(
        "UPDATE saga_records SET step = ?4, output = coalesce(?5, output), input = coalesce(?6, input) \
         WHERE tenant = ?1 AND key = ?2 AND step = ?3",
    )?;
    for record in &moved.rewritten {
        let (output, input) = (record.output.as_deref(), record.input.as_deref());
        give.execute((tenant, key, between(&record.from), record.to.as_str(), output, input))?;
    }
    Ok(())
}
