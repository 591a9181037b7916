//! Checks changes, and writes those that passed.
//!
//! Only the writer writes, so what was checked still holds when it is written.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension as _, params};
use saga_core::store::{
    Advance, Changes, Condition, HistoryEntry, Miss, NewMessage, NewRecord, Postponed, RevisedRecord, Started,
    StoreError, Timestamp, WorkRef,
};

use crate::clock::{micros, plus};
use crate::error::{Failure, misuse};
use crate::statements::expiry::Dates;
use crate::statements::lock_table::unlock;
use crate::statements::rows::{id_bytes, signed};
use crate::statements::saga_rows::{CurrentProgress, by_key, known_progress, saga_by_id, start};
use crate::statements::taken_locks::keep;
use crate::statements::work_rows::insert_work;
use crate::store::dead_letters::insert_open;
use crate::writer::session::Session;

/// Why a change misses, or the progress of its saga.
pub(crate) enum Check {
    Clear(Option<CurrentProgress>),
    Missed(Miss),
}

/// Refuses two changes of one saga in one call.
pub(crate) fn refuse_duplicate_changes(operation: &'static str, changes: &[Changes]) -> Result<(), StoreError> {
    if changes.len() < 2 {
        return Ok(());
    }
    let mut advanced = HashSet::with_capacity(changes.len());
    match changes.iter().filter_map(|change| change.saga.as_ref()).find(|advance| !advanced.insert(advance.id)) {
        None => Ok(()),
        Some(duplicate) => Err(misuse(operation, format!("two changes of saga {} in one call", duplicate.id.0))),
    }
}

/// Checks a change: the first miss of work row, late success, record, saga.
pub(crate) fn check(conn: &Connection, change: &Changes) -> rusqlite::Result<Check> {
    let mut late = None;
    let finished = change.finished.iter().map(|(work, condition)| (*work, *condition));
    let postponed = change.postponed.iter().map(|postponed| (postponed.work, Condition::Held));
    for (work, condition) in finished.chain(postponed) {
        match late_flag_of(conn, work)? {
            None => return Ok(Check::Missed(Miss::Work(work.id))),
            Some(true) if condition == Condition::NotLate => late = late.or(Some(work)),
            Some(_) => {}
        }
    }
    if let Some(work) = late {
        let output = conn
            .prepare_cached("SELECT late FROM saga_work WHERE id = ?1")?
            .query_row([work.id.0], |row| row.get(0))?;
        return Ok(Check::Missed(Miss::Late { work: work.id, output }));
    }
    if let Some(miss) = conflicting_record(conn, change)? {
        return Ok(Check::Missed(miss));
    }
    if let Some(saga) = &change.start
        && let Some(known) = by_key(conn, &saga.tenant, &saga.key)?
    {
        return Ok(Check::Missed(Miss::Saga(Box::new(known))));
    }
    let Some(advance) = &change.saga else { return Ok(Check::Clear(None)) };
    Ok(match known_progress(conn, advance.id)? {
        Some(progress) if progress.version == advance.expected => Check::Clear(Some(progress)),
        Some(_) => Check::Missed(Miss::Saga(Box::new(saga_by_id(conn, advance.id)?))),
        None => Check::Missed(Miss::NoSaga(advance.id)),
    })
}

/// Writes a change. `Err` is a miss that the check would have found; the caller has to roll back.
pub(crate) fn write(
    session: &mut Session,
    change: &Changes,
    progress: Option<CurrentProgress>,
    now: Timestamp,
) -> Result<Result<(), String>, Failure> {
    if let Some(saga) = &change.start
        && let Started::AlreadyExists(known) = start(session, saga)?
    {
        return Ok(Err(format!("the key `{}` is taken", known.key)));
    }
    for (work, condition) in &change.finished {
        if !finish(&session.conn, *work, *condition)? {
            return Ok(Err(format!("work row {} is gone", work.id.0)));
        }
    }
    for work in &change.withdrawn {
        session.conn.prepare_cached("DELETE FROM saga_work WHERE id = ?1")?.execute([work.0])?;
    }
    for postponed in &change.postponed {
        if !postpone(&session.conn, postponed, now)? {
            return Ok(Err(format!("work row {} is gone", postponed.work.id.0)));
        }
    }
    for record in &change.records {
        if !insert_record(&session.conn, record, now)? {
            return Ok(Err(format!("there is a record of {} already", record.step)));
        }
    }
    for revised in &change.revised {
        if !revise(&session.conn, revised)? {
            return Ok(Err(format!("the record of {} is not as expected", revised.step)));
        }
    }
    if let (Some(advance), Some(progress)) = (&change.saga, progress)
        && !advance_saga(&session.conn, advance, progress, now)?
    {
        return Ok(Err(format!("saga {} has moved", advance.id.0)));
    }
    for command in &change.commands {
        insert_work(session, command, command.saga, now)?;
    }
    if !change.messages.is_empty() {
        insert_messages(&session.conn, &change.messages, now)?;
    }
    for letter in &change.dead_letters {
        insert_open(&session.conn, letter, now)?;
    }
    for entry in &change.history {
        insert_history(&session.conn, entry, now)?;
    }
    for lock in &change.locked {
        keep(&session.conn, lock, now)?;
    }
    if !change.unlocked.is_empty() {
        unlock(&session.conn, &change.unlocked, now)?;
    }
    Ok(Ok(()))
}

/// Whether the row has that epoch, and if so, whether a late success is noted on it.
fn late_flag_of(conn: &Connection, work: WorkRef) -> rusqlite::Result<Option<bool>> {
    conn.prepare_cached("SELECT late IS NOT NULL FROM saga_work WHERE id = ?1 AND epoch = ?2")?
        .query_row((work.id.0, signed(work.epoch)), |row| row.get(0))
        .optional()
}

fn conflicting_record(conn: &Connection, change: &Changes) -> rusqlite::Result<Option<Miss>> {
    let outcome_of = |tenant: &str, key: &str, step: &str| {
        conn.prepare_cached("SELECT outcome FROM saga_records WHERE tenant = ?1 AND key = ?2 AND step = ?3")?
            .query_row((tenant, key, step), |row| row.get::<_, String>(0))
            .optional()
    };
    for (index, new) in change.records.iter().enumerate() {
        let is_same =
            |other: &NewRecord| (&other.tenant, &other.key, &other.step) == (&new.tenant, &new.key, &new.step);
        let is_taken = change.records[..index].iter().any(is_same)
            || outcome_of(new.tenant.as_str(), new.key.as_str(), new.step.as_str())?.is_some();
        if is_taken {
            return Ok(Some(Miss::Record(new.step.clone())));
        }
    }
    for old in &change.revised {
        let outcome = outcome_of(old.tenant.as_str(), old.key.as_str(), old.step.as_str())?;
        if outcome.as_deref() != Some(old.expected.as_str()) {
            return Ok(Some(Miss::Record(old.step.clone())));
        }
    }
    Ok(None)
}

fn finish(conn: &Connection, work: WorkRef, condition: Condition) -> rusqlite::Result<bool> {
    let sql = match condition {
        Condition::Held => "DELETE FROM saga_work WHERE id = ?1 AND epoch = ?2",
        Condition::NotLate => "DELETE FROM saga_work WHERE id = ?1 AND epoch = ?2 AND late IS NULL",
    };
    Ok(conn.prepare_cached(sql)?.execute((work.id.0, signed(work.epoch)))? == 1)
}

fn postpone(conn: &Connection, postponed: &Postponed, now: Timestamp) -> rusqlite::Result<bool> {
    let sql = "UPDATE saga_work SET owner = NULL, leased_until = NULL, due_at = ?3, attempts = ?4, maybe = ?5, \
         error = coalesce(?6, error), retrying_since = CASE WHEN ?6 IS NULL THEN retrying_since \
         ELSE coalesce(retrying_since, ?7) END WHERE id = ?1 AND epoch = ?2";
    let row = (
        postponed.work.id.0,
        signed(postponed.work.epoch),
        plus(now, postponed.due_in).0,
        postponed.attempts,
        postponed.in_doubt,
        postponed.error.as_deref(),
        now.0,
    );
    Ok(conn.prepare_cached(sql)?.execute(row)? == 1)
}

pub(crate) fn insert_record(conn: &Connection, new: &NewRecord, now: Timestamp) -> rusqlite::Result<bool> {
    let sql = "INSERT INTO saga_records (tenant, key, step, saga, outcome, position, attempts, recorded_at, \
         took_micros, output, error, input) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
         ON CONFLICT DO NOTHING";
    let row = (
        new.tenant.as_str(),
        new.key.as_str(),
        new.step.as_str(),
        new.saga.0,
        new.outcome.as_str(),
        new.position,
        new.attempts,
        now.0,
        micros(new.took),
        new.output.as_deref(),
        new.error.as_deref(),
        new.input.as_deref(),
    );
    Ok(conn.prepare_cached(sql)?.execute(row)? == 1)
}

fn revise(conn: &Connection, old: &RevisedRecord) -> rusqlite::Result<bool> {
    let sql = "UPDATE saga_records SET outcome = ?5, output = ?6 \
         WHERE tenant = ?1 AND key = ?2 AND step = ?3 AND outcome = ?4";
    let row = (
        old.tenant.as_str(),
        old.key.as_str(),
        old.step.as_str(),
        old.expected.as_str(),
        old.outcome.as_str(),
        old.output.as_deref(),
    );
    Ok(conn.prepare_cached(sql)?.execute(row)? == 1)
}

fn advance_saga(conn: &Connection, advance: &Advance, from: CurrentProgress, now: Timestamp) -> rusqlite::Result<bool> {
    let (expected, version) = (signed(advance.expected), signed(advance.expected + 1));
    let dates = Dates::of_advance(advance, now);
    if from.is_new {
        let sql = "INSERT INTO saga_progress (id, status, version, state, advanced_at, ended_at, expires_at, delete_at, \
             hosts) VALUES (?1, ?2, ?3, ?4, ?5, CASE WHEN ?6 THEN ?5 END, ?7, ?8, ?9)";
        let (status, ends) = (advance.status.as_str(), advance.status.is_ended());
        let row = (
            advance.id.0,
            status,
            version,
            &*advance.state,
            now.0,
            ends,
            dates.expires_at,
            dates.delete_at,
            dates.hosts,
        );
        return Ok(conn.prepare_cached(sql)?.execute(row)? == 1);
    }
    let changed = if advance.status == from.status && !advance.status.is_ended() {
        // The indexes over the status and the expiry stay as they are.
        let sql = "UPDATE saga_progress SET version = ?3, state = ?4, advanced_at = ?5 WHERE id = ?1 AND version = ?2";
        conn.prepare_cached(sql)?.execute((advance.id.0, expected, version, &*advance.state, now.0))?
    } else {
        // A saga that had ended and has no date is exempt, and stays so when a late success is recorded.
        let sql = "UPDATE saga_progress SET version = ?3, state = ?4, advanced_at = ?5, status = ?6, \
             ended_at = CASE WHEN ?7 THEN coalesce(ended_at, ?5) END, \
             expires_at = CASE WHEN ended_at IS NULL OR expires_at IS NOT NULL THEN ?8 END, \
             delete_at = CASE WHEN ended_at IS NULL OR expires_at IS NOT NULL THEN ?9 END, \
             hosts = CASE WHEN ended_at IS NULL OR expires_at IS NOT NULL THEN ?10 END \
             WHERE id = ?1 AND version = ?2";
        let (status, ends) = (advance.status.as_str(), advance.status.is_ended());
        conn.prepare_cached(sql)?.execute(params![
            advance.id.0,
            expected,
            version,
            &*advance.state,
            now.0,
            status,
            ends,
            dates.expires_at,
            dates.delete_at,
            dates.hosts,
        ])?
    };
    Ok(changed == 1)
}

pub(crate) fn insert_messages(conn: &Connection, messages: &[NewMessage], now: Timestamp) -> rusqlite::Result<()> {
    let mut statement = conn.prepare_cached(
        "INSERT INTO saga_outbox (id, lane, tenant, aggregatetype, aggregateid, type, position, committed_at, payload, \
         kind, headers, due_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (id) DO NOTHING",
    )?;
    for new in messages {
        statement.execute((
            id_bytes(new.id),
            new.lane,
            new.tenant.as_str(),
            &*new.aggregate_type,
            &*new.aggregate_id,
            &*new.event_type,
            signed(new.position),
            now.0,
            &*new.payload,
            new.kind.as_str(),
            new.headers.encode(),
            plus(now, new.due_in).0,
        ))?;
    }
    Ok(())
}

/// Inserts an entry, unless its saga was deleted since it was read.
pub(crate) fn insert_history(conn: &Connection, entry: &HistoryEntry, now: Timestamp) -> rusqlite::Result<()> {
    let sql = "INSERT INTO saga_history (saga, at, step, kind, attempt, detail) \
         SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM saga_sagas WHERE id = ?1)";
    let step = entry.step.as_ref().map(saga_core::store::StepId::as_str);
    conn.prepare_cached(sql)?.execute((
        entry.saga.0,
        now.0,
        step,
        entry.kind.as_str(),
        entry.attempt,
        &*entry.detail,
    ))?;
    Ok(())
}
