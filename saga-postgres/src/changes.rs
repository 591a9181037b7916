//! Writing changes: what they hold as arrays, and what was in the way as answers.

use std::collections::HashSet;

use saga_core::store::{
    Advance, Changes, Condition, DefinitionId, HistoryEntry, NewMessage, NewRecord, Postponed, RevisedRecord,
    StoreError, WorkId, WorkRef,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use crate::arrays::{Command, bind_commands, column, placeholders};
use crate::clock::micros;
use crate::definitions::Numbers;
use crate::error::misuse;
use crate::rows::{self, clean, signed};
use crate::store::PostgresStore;

/// How many arguments `record_changes` takes.
const ARGUMENTS: usize = 65;

/// What was in the way of a change, as `record_changes` answers it.
#[derive(Debug)]
pub(crate) struct Met {
    pub(crate) change: usize,
    pub(crate) what: Obstacle,
}

#[derive(Debug)]
pub(crate) enum Obstacle {
    Work(WorkId),
    Late(WorkId, Vec<u8>),
    Record(String),
    Saga(i64),
    Absent(i64),
}

/// What `record_changes` answers.
pub(crate) enum Written {
    /// Nothing was in the way of all others.
    Met(Vec<Met>),
    /// It did not run in the transaction that the claims were made in.
    Ended,
}

/// Refuses what no store accepts.
pub(crate) fn refuse_twins(operation: &'static str, changes: &[Changes]) -> Result<(), StoreError> {
    let mut advanced = HashSet::with_capacity(changes.len());
    match changes.iter().filter_map(|change| change.saga.as_ref()).find(|advance| !advanced.insert(advance.id)) {
        None => Ok(()),
        Some(twin) => Err(misuse(operation, format!("two changes of saga {} in one call", twin.id.0))),
    }
}

/// Where to cut the changes so that no two of one part touch the same row: such are written one after the other.
pub(crate) fn parts(changes: &[Changes]) -> Vec<std::ops::Range<usize>> {
    let (mut rows, mut records) = (HashSet::new(), HashSet::new());
    let (mut parts, mut start) = (Vec::new(), 0);
    for (index, change) in changes.iter().enumerate() {
        let work: HashSet<WorkId> = held(change).map(|(work, _)| work.id).collect();
        let keys: HashSet<_> = keys(change).collect();
        if !rows.is_disjoint(&work) || !records.is_disjoint(&keys) {
            parts.push(start..index);
            start = index;
            rows.clear();
            records.clear();
        }
        rows.extend(work);
        records.extend(keys);
    }
    parts.push(start..changes.len());
    parts
}

/// The definitions of the commands.
pub(crate) fn definitions(changes: &[Changes]) -> impl Iterator<Item = DefinitionId> {
    changes.iter().flat_map(|change| &change.commands).map(|command| command.definition.clone())
}

impl PostgresStore {
    /// Writes changes by one statement. In a transaction of handlers, which is named by `xact`, all of them or none.
    pub(crate) async fn write_changes(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        xact: Option<&str>,
        changes: &[Changes],
        numbers: &Numbers,
        failed: fn(&'static str, sqlx::Error) -> StoreError,
    ) -> Result<Written, StoreError> {
        let flat = Flat::new(changes, operation, numbers)?;
        let rows = flat.query(self, xact).fetch_all(conn).await.map_err(|error| failed(operation, error))?;
        let met = rows.iter().map(obstacle).collect::<Result<Option<Vec<_>>, _>>();
        let met = met.map_err(|error| crate::error::store_error(operation, error))?;
        Ok(met.map_or(Written::Ended, Written::Met))
    }
}

/// Nothing when the transaction is another one.
fn obstacle(row: &PgRow) -> Result<Option<Met>, sqlx::Error> {
    let what = match rows::text(row, 0)? {
        "ended" => return Ok(None),
        "work" => Obstacle::Work(WorkId(row.try_get(2)?)),
        "late" => Obstacle::Late(WorkId(row.try_get(2)?), row.try_get(4)?),
        "record" => Obstacle::Record(row.try_get(3)?),
        "saga" => Obstacle::Saga(row.try_get(2)?),
        _ => Obstacle::Absent(row.try_get(2)?),
    };
    let change = usize::try_from(row.try_get::<i32, _>(1)?).unwrap_or(usize::MAX);
    Ok(Some(Met { change, what }))
}

fn held(change: &Changes) -> impl Iterator<Item = (WorkRef, Condition)> {
    let finished = change.finished.iter().copied();
    finished.chain(change.postponed.iter().map(|postponed| (postponed.work, Condition::Held)))
}

fn keys(change: &Changes) -> impl Iterator<Item = (&str, &str, &str)> {
    let new = change.records.iter().map(|new| (new.tenant.as_str(), new.key.as_str(), new.step.as_str()));
    new.chain(change.revised.iter().map(|old| (old.tenant.as_str(), old.key.as_str(), old.step.as_str())))
}

/// Rows of all changes, each with the number of its change.
struct Flat<'a> {
    held: Vec<(i32, WorkRef, Condition)>,
    finished: Vec<(i32, WorkId)>,
    postponed: Vec<(i32, &'a Postponed)>,
    records: Vec<(i32, &'a NewRecord)>,
    revised: Vec<(i32, &'a RevisedRecord)>,
    sagas: Vec<(i32, &'a Advance)>,
    commands: Vec<Command<'a>>,
    messages: Vec<(i32, &'a NewMessage)>,
    history: Vec<(i32, &'a HistoryEntry)>,
}

impl<'a> Flat<'a> {
    fn new(changes: &'a [Changes], operation: &'static str, numbers: &Numbers) -> Result<Self, StoreError> {
        let mut flat = Self {
            held: Vec::with_capacity(changes.len()),
            finished: Vec::with_capacity(changes.len()),
            postponed: Vec::new(),
            records: Vec::with_capacity(changes.len()),
            revised: Vec::new(),
            sagas: Vec::with_capacity(changes.len()),
            commands: Vec::with_capacity(changes.len()),
            messages: Vec::new(),
            history: Vec::new(),
        };
        for (number, change) in (0_i32..).zip(changes) {
            flat.held.extend(held(change).map(|(work, condition)| (number, work, condition)));
            flat.finished.extend(change.finished.iter().map(|(work, _)| (number, work.id)));
            flat.postponed.extend(change.postponed.iter().map(|postponed| (number, postponed)));
            flat.records.extend(change.records.iter().map(|record| (number, record)));
            flat.revised.extend(change.revised.iter().map(|record| (number, record)));
            flat.sagas.extend(change.saga.iter().map(|advance| (number, advance)));
            for new in &change.commands {
                let definition = numbers.of(operation, &new.definition)?;
                flat.commands.push(Command { change: number, definition, new });
            }
            flat.messages.extend(change.messages.iter().map(|message| (number, message)));
            flat.history.extend(change.history.iter().map(|entry| (number, entry)));
        }
        // Everybody takes locks in one order, so that nobody waits in a circle.
        flat.held.sort_unstable_by_key(|(_, work, _)| work.id);
        flat.records.sort_by_key(|(_, new)| (new.tenant.as_str(), new.key.as_str(), new.step.as_str()));
        flat.revised.sort_by_key(|(_, old)| (old.tenant.as_str(), old.key.as_str(), old.step.as_str()));
        flat.sagas.sort_unstable_by_key(|(_, advance)| advance.id);
        Ok(flat)
    }

    fn query(&self, store: &PostgresStore, xact: Option<&str>) -> crate::arrays::Statement<'static> {
        let sql = store.sql(&format!("SELECT * FROM {{schema}}.record_changes({})", placeholders(ARGUMENTS)));
        let query = sqlx::query(sql)
            .bind(xact.map(str::to_owned))
            .bind(column(&self.held, |(change, ..)| *change))
            .bind(column(&self.held, |(_, work, _)| work.id.0))
            .bind(column(&self.held, |(_, work, _)| signed(work.epoch)))
            .bind(column(&self.held, |(.., condition)| *condition == Condition::NotLate))
            .bind(column(&self.finished, |(change, _)| *change))
            .bind(column(&self.finished, |(_, id)| id.0));
        let query = self.bind_records(self.bind_postponed(query));
        let query = query
            .bind(column(&self.sagas, |(change, _)| *change))
            .bind(column(&self.sagas, |(_, advance)| advance.id.0))
            .bind(column(&self.sagas, |(_, advance)| signed(advance.expected)))
            .bind(column(&self.sagas, |(_, advance)| advance.status.as_str()))
            .bind(column(&self.sagas, |(_, advance)| advance.status.is_ended()))
            .bind(column(&self.sagas, |(_, advance)| &*advance.state))
            .bind(column(&self.commands, |command| command.change));
        self.bind_rest(bind_commands(query, &self.commands))
    }

    fn bind_postponed<'q>(&self, query: crate::arrays::Statement<'q>) -> crate::arrays::Statement<'q> {
        let postponed = &self.postponed;
        query
            .bind(column(postponed, |(change, _)| *change))
            .bind(column(postponed, |(_, row)| row.work.id.0))
            .bind(column(postponed, |(_, row)| micros(row.due_in)))
            .bind(column(postponed, |(_, row)| i64::from(row.attempts)))
            .bind(column(postponed, |(_, row)| row.maybe))
            .bind(column(postponed, |(_, row)| row.error.as_deref().map(clean)))
    }

    fn bind_records<'q>(&self, query: crate::arrays::Statement<'q>) -> crate::arrays::Statement<'q> {
        let (new, old) = (&self.records, &self.revised);
        query
            .bind(column(new, |(change, _)| *change))
            .bind(column(new, |(_, row)| row.tenant.as_str()))
            .bind(column(new, |(_, row)| row.key.as_str()))
            .bind(column(new, |(_, row)| row.step.as_str()))
            .bind(column(new, |(_, row)| row.saga.0))
            .bind(column(new, |(_, row)| row.outcome.as_str()))
            .bind(column(new, |(_, row)| i64::from(row.position)))
            .bind(column(new, |(_, row)| i64::from(row.attempts)))
            .bind(column(new, |(_, row)| micros(row.took)))
            .bind(column(new, |(_, row)| row.output.as_deref()))
            .bind(column(new, |(_, row)| row.error.as_deref()))
            .bind(column(new, |(_, row)| row.input.as_deref()))
            .bind(column(old, |(change, _)| *change))
            .bind(column(old, |(_, row)| row.tenant.as_str()))
            .bind(column(old, |(_, row)| row.key.as_str()))
            .bind(column(old, |(_, row)| row.step.as_str()))
            .bind(column(old, |(_, row)| row.expected.as_str()))
            .bind(column(old, |(_, row)| row.outcome.as_str()))
            .bind(column(old, |(_, row)| row.output.as_deref()))
    }

    fn bind_rest<'q>(&self, query: crate::arrays::Statement<'q>) -> crate::arrays::Statement<'q> {
        let (messages, history) = (&self.messages, &self.history);
        query
            .bind(column(messages, |(change, _)| *change))
            .bind(column(messages, |(_, row)| row.id.0))
            .bind(column(messages, |(_, row)| i16::from(row.lane)))
            .bind(column(messages, |(_, row)| row.tenant.as_str()))
            .bind(column(messages, |(_, row)| clean(&row.aggregate_type)))
            .bind(column(messages, |(_, row)| clean(&row.aggregate_id)))
            .bind(column(messages, |(_, row)| clean(&row.event_type)))
            .bind(column(messages, |(_, row)| signed(row.position)))
            .bind(column(messages, |(_, row)| &*row.payload))
            .bind(column(history, |(change, _)| *change))
            .bind(column(history, |(_, entry)| entry.saga.0))
            .bind(column(history, |(_, entry)| entry.step.as_ref().map(saga_core::key::StepId::as_str)))
            .bind(column(history, |(_, entry)| entry.kind.as_str()))
            .bind(column(history, |(_, entry)| i64::from(entry.attempt)))
            .bind(column(history, |(_, entry)| clean(&entry.detail)))
    }
}
