//! Checks changes, and writes those that passed.

use super::unlock::unlock;
use crate::memory::clock::Moment;
use crate::memory::tables::data::Data;
use crate::memory::tables::locks::{Lock, TxId};
use crate::store::{
    Changes, Condition, HistoryKind, Miss, NewRecord, NewSaga, Postponed, RevisedRecord, StepRecord, StoreError,
    Timestamp,
};
use crate::store::{StoreErrorKind, WorkRef};

/// Refuses a misuse before anything is checked.
pub(in crate::memory) fn refuse_misuse(
    data: &Data,
    operation: &'static str,
    changes: &[Changes],
    starts: &[NewSaga],
) -> Result<(), StoreError> {
    let misuse = |detail: String| Err(StoreError::new(StoreErrorKind::Misuse, operation, detail));
    for (index, change) in changes.iter().enumerate() {
        if let Some(advance) = &change.saga {
            let advances = |other: &Changes| other.saga.as_ref().is_some_and(|other| other.id == advance.id);
            if changes[..index].iter().any(advances) {
                return misuse(format!("two changes of saga {} in one call", advance.id.0));
            }
        }
        // Changes that were applied before and are recorded again are a miss, no misuse.
        if let Some(detail) = used_id(data, change)
            && miss(data, change, starts).is_none()
        {
            return misuse(detail);
        }
    }
    Ok(())
}

/// The transaction that holds a row which these changes write, other than `me`.
pub(in crate::memory) fn blocked(data: &Data, changes: &[Changes], me: Option<TxId>) -> Option<TxId> {
    changes.iter().flat_map(locks_of).find_map(|lock| data.locks.holder(&lock, me))
}

/// Everything that a change writes and that another transaction may write.
pub(in crate::memory) fn locks_of(change: &Changes) -> impl Iterator<Item = Lock> {
    let withdrawn = change.withdrawn.iter().map(|work| Lock::Work(*work));
    let work = work_of(change).map(|work| Lock::Work(work.id)).chain(withdrawn);
    let new = change.records.iter().map(|new| Lock::Record(new.tenant.clone(), new.key.clone(), new.step.clone()));
    let revised = change.revised.iter();
    let revised = revised.map(|old| Lock::Record(old.tenant.clone(), old.key.clone(), old.step.clone()));
    let started = change.start.iter().map(|saga| Lock::Key(saga.tenant.clone(), saga.key.clone()));
    let saga = change.saga.iter().map(|advance| Lock::Saga(advance.id)).chain(started);
    work.chain(new).chain(revised).chain(saga)
}

/// Why a change misses in a transaction that starts these sagas: the first of work row, late success, record, saga.
pub(in crate::memory) fn miss(data: &Data, change: &Changes, starts: &[NewSaga]) -> Option<Miss> {
    missing_work(data, change)
        .or_else(|| late_success(data, change))
        .or_else(|| conflicting_record(data, change))
        .or_else(|| moved_saga(data, change, starts))
}

/// Writes a change that passed the checks.
pub(in crate::memory) fn apply(data: &mut Data, change: Changes, now: Timestamp) {
    if let Some(saga) = change.start {
        data.insert_saga(*saga, now);
    }
    for (work, _) in change.finished {
        data.delete_work(work.id);
    }
    for work in change.withdrawn {
        data.delete_work(work);
    }
    for postponed in change.postponed {
        postpone(data, postponed, now);
    }
    for record in change.records {
        insert_record(data, record, now);
    }
    for revised in change.revised {
        revise(data, revised);
    }
    if let Some(advance) = change.saga
        && let Some(saga) = data.sagas.get_mut(&advance.id)
    {
        let row = &mut saga.row;
        row.status = advance.status;
        row.state = advance.state;
        row.version = advance.expected + 1;
        row.advanced_at = now;
        // A saga that had ended and has no date is exempt, and stays so when a late success is recorded.
        let is_exempt = row.ended_at.is_some() && saga.dated.is_none();
        row.ended_at = if row.status.is_ended() { row.ended_at.or(Some(now)) } else { None };
        data.date(advance.id, advance.expiry.as_deref().filter(|_| !is_exempt), now);
    }
    for command in change.commands {
        data.insert_work(command, now);
    }
    for message in change.messages {
        data.outbox.insert(message, now);
    }
    for letter in change.dead_letters {
        data.dead_letters.insert_open(letter, now);
    }
    for entry in change.history {
        if entry.kind == HistoryKind::Operator && data.sagas.contains_key(&entry.saga) {
            data.audit_log.push((now, entry.clone()));
        }
        if let Some(saga) = data.sagas.get_mut(&entry.saga) {
            saga.history.push((now, entry));
        }
    }
    for lock in &change.locked {
        data.semantic_locks.keep(lock, now);
    }
    unlock(data, &change.unlocked, now);
}

pub(in crate::memory) fn insert_record(data: &mut Data, new: NewRecord, now: Timestamp) {
    let saga = (new.tenant.clone(), new.key.clone());
    data.records.entry(saga).or_default().push(StepRecord::recorded(new, now));
}

/// Says which id to insert is used already.
fn used_id(data: &Data, change: &Changes) -> Option<String> {
    let started = change.start.iter().flat_map(|saga| &saga.commands);
    let command = change.commands.iter().chain(started).find(|command| data.work.contains_key(&command.id));
    command.map(|command| format!("there is a work row {} already", command.id.0))
}

fn work_of(change: &Changes) -> impl Iterator<Item = WorkRef> {
    change.finished.iter().map(|(work, _)| *work).chain(change.postponed.iter().map(|postponed| postponed.work))
}

fn missing_work(data: &Data, change: &Changes) -> Option<Miss> {
    let is_held = |work: &WorkRef| data.work.get(&work.id).is_some_and(|row| row.epoch == work.epoch);
    work_of(change).find(|work| !is_held(work)).map(|work| Miss::Work(work.id))
}

fn late_success(data: &Data, change: &Changes) -> Option<Miss> {
    change.finished.iter().filter(|(_, condition)| *condition == Condition::NotLate).find_map(|(work, _)| {
        let output = data.work.get(&work.id)?.late.clone()?;
        Some(Miss::Late { work: work.id, output })
    })
}

fn conflicting_record(data: &Data, change: &Changes) -> Option<Miss> {
    let twice = |(index, new): (usize, &NewRecord)| {
        let is_same =
            |other: &NewRecord| (&other.tenant, &other.key, &other.step) == (&new.tenant, &new.key, &new.step);
        (data.has_record(&new.tenant, &new.key, &new.step) || change.records[..index].iter().any(is_same))
            .then(|| new.step.clone())
    };
    let unexpected = |old: &RevisedRecord| {
        let outcome = data.record(&old.tenant, &old.key, &old.step).map(|record| record.outcome);
        (outcome != Some(old.expected)).then(|| old.step.clone())
    };
    let step = change.records.iter().enumerate().find_map(twice);
    step.or_else(|| change.revised.iter().find_map(unexpected)).map(Miss::Record)
}

fn moved_saga(data: &Data, change: &Changes, starts: &[NewSaga]) -> Option<Miss> {
    if let Some(known) = change.start.as_ref().and_then(|saga| data.saga_of(&saga.tenant, &saga.key)) {
        return Some(Miss::Saga(Box::new(known.row.clone())));
    }
    let advance = change.saga.as_ref()?;
    match data.sagas.get(&advance.id) {
        Some(saga) => (saga.row.version != advance.expected).then(|| Miss::Saga(Box::new(saga.row.clone()))),
        None if starts.iter().any(|saga| saga.id == advance.id) => None,
        None => Some(Miss::NoSaga(advance.id)),
    }
}

fn postpone(data: &mut Data, postponed: Postponed, now: Timestamp) {
    let id = postponed.work.id;
    let Some(row) = data.work.get_mut(&id) else { return };
    data.due.remove(&(row.due_at, id));
    row.due_at = now.plus(postponed.due_in);
    data.due.insert((row.due_at, id));
    row.lease = None;
    row.attempts = postponed.attempts;
    row.in_doubt = postponed.in_doubt;
    if let Some(error) = postponed.error {
        row.error = Some(error);
        row.retrying_since.get_or_insert(now);
    }
}

fn revise(data: &mut Data, revised: RevisedRecord) {
    let records = data.records.get_mut(&(revised.tenant, revised.key));
    let is_it = |record: &&mut StepRecord| record.step == revised.step;
    if let Some(record) = records.and_then(|records| records.iter_mut().find(is_it)) {
        record.outcome = revised.outcome;
        record.output = revised.output;
    }
}
