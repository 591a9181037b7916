//! Writes changes: their rows as arrays, and what they met as answers.

use std::collections::HashSet;
use std::time::Duration;

use saga_core::store::{
    Advance, Changes, Condition, DefinitionId, HistoryEntry, NewDeadLetter, NewMessage, NewRecord, NewSaga, NewWork,
    Postponed, RevisedRecord, StoreError, WorkId,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use crate::clock::micros;
use crate::error::{Commits, misuse, store_error};
use crate::options::Relay;
use crate::rows::arrays::{Command, bind_commands, bind_terms, column, placeholders};
use crate::rows::definition_numbers::Numbers;
use crate::rows::expiry::Term;
use crate::rows::rows::{self, clean, signed};
use crate::step_transaction::grant::Granted;
use crate::store::dead_letters::bind_dead_letters;
use crate::store::sagas::definitions_of;
use crate::store::store::PostgresStore;

/// The number of arguments of `record_dated_changes`.
const ARGUMENTS: usize = 98;

/// Why a change misses, as `record_dated_changes` answers it.
#[derive(Debug)]
pub(crate) struct Obstacle {
    pub(crate) change: usize,
    pub(crate) kind: ObstacleKind,
}

#[derive(Debug)]
pub(crate) enum ObstacleKind {
    Work(WorkId),
    Late(WorkId, Vec<u8>),
    Record(String),
    Saga(i64),
    KeyTaken,
    NoSaga(i64),
}

/// The answer of `record_dated_changes`.
pub(crate) enum WriteOutcome {
    /// The misses. All other changes are written.
    Obstacles(Vec<Obstacle>),
    /// It did not run in the transaction in which the claims were granted.
    OutsideTransaction,
}

/// Refuses two changes of one saga in one call.
pub(crate) fn refuse_duplicate_changes(operation: &'static str, changes: &[Changes]) -> Result<(), StoreError> {
    let mut advanced = HashSet::with_capacity(changes.len());
    match changes.iter().filter_map(|change| change.saga.as_ref()).find(|advance| !advanced.insert(advance.id)) {
        None => Ok(()),
        Some(duplicate) => Err(misuse(operation, format!("two changes of saga {} in one call", duplicate.id.0))),
    }
}

/// Splits the changes so that no two changes of one part write the same row: the parts are written one after another.
pub(crate) fn split_by_rows(changes: &[Changes]) -> Vec<std::ops::Range<usize>> {
    let (mut rows, mut records, mut sagas, mut starts) =
        (HashSet::new(), HashSet::new(), HashSet::new(), HashSet::new());
    let (mut parts, mut start) = (Vec::new(), 0);
    for (index, change) in changes.iter().enumerate() {
        let work: HashSet<WorkId> = touched(change).collect();
        let keys: HashSet<_> = keys(change).collect();
        let saga = change.saga.as_ref().map(|advance| advance.id);
        let key = change.start.as_ref().map(|saga| (&saga.tenant, &saga.key));
        let is_of_started = saga.is_some_and(|saga| sagas.contains(&saga));
        let is_taken = key.is_some_and(|key| starts.contains(&key));
        if !rows.is_disjoint(&work) || !records.is_disjoint(&keys) || is_of_started || is_taken {
            parts.push(start..index);
            start = index;
            rows.clear();
            records.clear();
            sagas.clear();
            starts.clear();
        }
        rows.extend(work);
        records.extend(keys);
        sagas.extend(change.start.as_ref().map(|saga| saga.id));
        starts.extend(key);
    }
    parts.push(start..changes.len());
    parts
}

/// The definitions of the commands, and of the sagas that are started.
pub(crate) fn definitions(changes: &[Changes]) -> impl Iterator<Item = DefinitionId> {
    let started = changes.iter().filter_map(|change| change.start.as_deref()).flat_map(definitions_of);
    changes.iter().flat_map(|change| &change.commands).map(|command| command.definition.clone()).chain(started)
}

impl PostgresStore {
    /// Writes changes by one statement. In a transaction of handlers, with their grants, it writes all of them or none.
    pub(crate) async fn write_changes(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        granted: Option<&Granted>,
        changes: &[Changes],
        numbers: &Numbers,
        commits: Commits,
    ) -> Result<WriteOutcome, StoreError> {
        let flat = ChangeRows::new(changes, operation, numbers)?;
        let rows = flat
            .query(self, granted)
            .persistent(self.prepares_statements())
            .fetch_all(conn)
            .await
            .map_err(|error| commits.failed(operation, error))?;
        let obstacles = rows.iter().map(obstacle).collect::<Result<Option<Vec<_>>, _>>();
        let obstacles = obstacles.map_err(|error| commits.failed_behind(store_error(operation, error)))?;
        Ok(obstacles.map_or(WriteOutcome::OutsideTransaction, WriteOutcome::Obstacles))
    }
}

/// `None` when the transaction is another one.
fn obstacle(row: &PgRow) -> Result<Option<Obstacle>, sqlx::Error> {
    let what = match rows::text(row, 0)? {
        "ended" => return Ok(None),
        "work" => ObstacleKind::Work(WorkId(row.try_get(2)?)),
        "late" => ObstacleKind::Late(WorkId(row.try_get(2)?), row.try_get(4)?),
        "record" => ObstacleKind::Record(row.try_get(3)?),
        "saga" => ObstacleKind::Saga(row.try_get(2)?),
        "taken" => ObstacleKind::KeyTaken,
        _ => ObstacleKind::NoSaga(row.try_get(2)?),
    };
    let change = usize::try_from(row.try_get::<i32, _>(1)?).unwrap_or(usize::MAX);
    Ok(Some(Obstacle { change, kind: what }))
}

/// The work rows that a change holds or inserts.
fn touched(change: &Changes) -> impl Iterator<Item = WorkId> {
    held(change).map(|(work, ..)| work).chain(commands(change).map(|command| command.id))
}

/// The work rows that a change requires, each with its epoch; withdrawn rows have none.
fn held(change: &Changes) -> impl Iterator<Item = (WorkId, Option<u64>, Condition)> {
    let finished = change.finished.iter().map(|(work, condition)| (work.id, Some(work.epoch), *condition));
    let postponed = change.postponed.iter().map(|row| (row.work.id, Some(row.work.epoch), Condition::Held));
    finished.chain(postponed).chain(change.withdrawn.iter().map(|work| (*work, None, Condition::Held)))
}

/// The commands of a change, with those of the saga that it starts.
fn commands(change: &Changes) -> impl Iterator<Item = &NewWork> {
    change.commands.iter().chain(change.start.iter().flat_map(|saga| &saga.commands))
}

fn keys(change: &Changes) -> impl Iterator<Item = (&str, &str, &str)> {
    let new = change.records.iter().map(|new| (new.tenant.as_str(), new.key.as_str(), new.step.as_str()));
    new.chain(change.revised.iter().map(|old| (old.tenant.as_str(), old.key.as_str(), old.step.as_str())))
}

/// A row that is tried again later: an existing row, or one that is inserted after an attempt.
struct Postponement<'a> {
    id: WorkId,
    due_in: Duration,
    attempts: u32,
    in_doubt: bool,
    error: Option<&'a str>,
}

impl<'a> Postponement<'a> {
    fn of_postponed(row: &'a Postponed) -> Self {
        let (id, error) = (row.work.id, row.error.as_deref());
        Self { id, due_in: row.due_in, attempts: row.attempts, in_doubt: row.in_doubt, error }
    }

    fn of_tried(new: &'a NewWork) -> Option<Self> {
        let tried = new.tried.as_ref()?;
        let (attempts, error) = (tried.attempts, Some(&*tried.error));
        Some(Self { id: new.id, due_in: new.due_in, attempts, in_doubt: false, error })
    }
}

/// The rows of all changes, each with the index of its change.
struct ChangeRows<'a> {
    held: Vec<(i32, WorkId, Option<u64>, Condition)>,
    finished: Vec<(i32, WorkId)>,
    postponed: Vec<(i32, Postponement<'a>)>,
    records: Vec<(i32, &'a NewRecord)>,
    revised: Vec<(i32, &'a RevisedRecord)>,
    sagas: Vec<(i32, &'a Advance)>,
    starts: Vec<(i32, i32, &'a NewSaga)>,
    commands: Vec<Command<'a>>,
    messages: Vec<(i32, &'a NewMessage)>,
    letters: Vec<(i32, &'a NewDeadLetter)>,
    history: Vec<(i32, &'a HistoryEntry)>,
}

impl<'a> ChangeRows<'a> {
    fn new(changes: &'a [Changes], operation: &'static str, numbers: &Numbers) -> Result<Self, StoreError> {
        let mut flat = Self {
            held: Vec::with_capacity(changes.len()),
            finished: Vec::with_capacity(changes.len()),
            postponed: Vec::new(),
            records: Vec::with_capacity(changes.len()),
            revised: Vec::new(),
            sagas: Vec::with_capacity(changes.len()),
            starts: Vec::new(),
            commands: Vec::with_capacity(changes.len()),
            messages: Vec::new(),
            letters: Vec::new(),
            history: Vec::new(),
        };
        for (number, change) in (0_i32..).zip(changes) {
            flat.held.extend(held(change).map(|(work, epoch, condition)| (number, work, epoch, condition)));
            flat.finished.extend(change.finished.iter().map(|(work, _)| (number, work.id)));
            flat.finished.extend(change.withdrawn.iter().map(|work| (number, *work)));
            flat.postponed.extend(change.postponed.iter().map(|row| (number, Postponement::of_postponed(row))));
            flat.postponed.extend(commands(change).filter_map(Postponement::of_tried).map(|row| (number, row)));
            flat.records.extend(change.records.iter().map(|record| (number, record)));
            flat.revised.extend(change.revised.iter().map(|record| (number, record)));
            flat.sagas.extend(change.saga.iter().map(|advance| (number, advance)));
            if let Some(saga) = &change.start {
                flat.starts.push((number, numbers.of(operation, &saga.definition)?, saga));
            }
            for new in commands(change) {
                let definition = numbers.of(operation, &new.definition)?;
                flat.commands.push(Command { change: number, definition, new });
            }
            flat.messages.extend(change.messages.iter().map(|message| (number, message)));
            flat.letters.extend(change.dead_letters.iter().map(|letter| (number, letter)));
            flat.history.extend(change.history.iter().map(|entry| (number, entry)));
        }
        // All transactions take locks in one order, so that none waits in a circle.
        flat.held.sort_unstable_by_key(|(_, work, ..)| *work);
        flat.records.sort_by_key(|(_, new)| (new.tenant.as_str(), new.key.as_str(), new.step.as_str()));
        flat.revised.sort_by_key(|(_, old)| (old.tenant.as_str(), old.key.as_str(), old.step.as_str()));
        flat.sagas.sort_unstable_by_key(|(_, advance)| advance.id);
        flat.starts.sort_by_key(|(.., saga)| (&saga.tenant, &saga.key));
        flat.letters.sort_by_key(|(_, letter)| letter.fingerprint);
        Ok(flat)
    }

    fn query(&self, store: &PostgresStore, granted: Option<&Granted>) -> crate::rows::arrays::Statement<'static> {
        let sql = match granted {
            Some(_) => format!("SELECT * FROM {{schema}}.record_dated_changes({})", placeholders(ARGUMENTS)),
            // The first argument is NULL; the expression sets the lock timeout before the function is called.
            None => format!(
                "SELECT r.* FROM {} CROSS JOIN LATERAL {{schema}}.record_dated_changes(coalesce($1, nullif(short.waits, short.waits)){}) r",
                store.short_wait(),
                placeholders(ARGUMENTS).trim_start_matches("$1"),
            ),
        };
        let query = sqlx::query(store.sql(&sql))
            .bind(granted.map(|granted| granted.xact.clone()))
            .bind(store.shared().options.relay == Relay::Cdc)
            .bind(column(&self.held, |(change, ..)| *change))
            .bind(column(&self.held, |(_, work, ..)| work.0))
            .bind(column(&self.held, |(_, _, epoch, _)| epoch.map(signed)))
            .bind(column(&self.held, |(.., condition)| *condition == Condition::NotLate))
            .bind(column(&self.finished, |(change, _)| *change))
            .bind(column(&self.finished, |(_, id)| id.0));
        let query = self.bind_records(self.bind_postponed(query));
        let query = query
            .bind(column(&self.sagas, |(change, _)| *change))
            .bind(column(&self.sagas, |(_, advance)| advance.id.0))
            .bind(column(&self.sagas, |(_, advance)| signed(advance.expected)))
            .bind(column(&self.sagas, |(_, advance)| {
                granted.is_some_and(|granted| granted.started.contains(&advance.id))
            }))
            .bind(column(&self.sagas, |(_, advance)| advance.status.as_str()))
            .bind(column(&self.sagas, |(_, advance)| advance.status.is_ended()))
            .bind(column(&self.sagas, |(_, advance)| &*advance.state));
        let query = bind_terms(query, &self.sagas, |(_, advance)| Term::of_advance(advance));
        let query = self.bind_starts(query).bind(column(&self.commands, |command| command.change));
        let query = self.bind_messages(bind_commands(query, &self.commands));
        let query = query.bind(column(&self.letters, |(change, _)| *change));
        let letters: Vec<&NewDeadLetter> = self.letters.iter().map(|(_, letter)| *letter).collect();
        self.bind_history(bind_dead_letters(query, &letters))
    }

    fn bind_starts<'q>(&self, query: crate::rows::arrays::Statement<'q>) -> crate::rows::arrays::Statement<'q> {
        let starts = &self.starts;
        let query = query
            .bind(column(starts, |(change, ..)| *change))
            .bind(column(starts, |(.., saga)| saga.id.0))
            .bind(column(starts, |(.., saga)| saga.tenant.as_str()))
            .bind(column(starts, |(.., saga)| saga.key.as_str()))
            .bind(column(starts, |(_, definition, _)| *definition))
            .bind(column(starts, |(.., saga)| &saga.digest[..]))
            .bind(column(starts, |(.., saga)| &*saga.input))
            .bind(column(starts, |(.., saga)| &*saga.input_hash))
            .bind(column(starts, |(.., saga)| &*saga.state))
            .bind(column(starts, |(.., saga)| saga.status.as_str()))
            .bind(column(starts, |(.., saga)| saga.status.is_ended()));
        bind_terms(query, starts, |(.., saga)| Term::of_start(saga))
    }

    fn bind_postponed<'q>(&self, query: crate::rows::arrays::Statement<'q>) -> crate::rows::arrays::Statement<'q> {
        let postponed = &self.postponed;
        query
            .bind(column(postponed, |(change, _)| *change))
            .bind(column(postponed, |(_, row)| row.id.0))
            .bind(column(postponed, |(_, row)| micros(row.due_in)))
            .bind(column(postponed, |(_, row)| i64::from(row.attempts)))
            .bind(column(postponed, |(_, row)| row.in_doubt))
            .bind(column(postponed, |(_, row)| row.error.map(clean)))
    }

    fn bind_records<'q>(&self, query: crate::rows::arrays::Statement<'q>) -> crate::rows::arrays::Statement<'q> {
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

    fn bind_messages<'q>(&self, query: crate::rows::arrays::Statement<'q>) -> crate::rows::arrays::Statement<'q> {
        let messages = &self.messages;
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
            .bind(column(messages, |(_, row)| row.kind.as_str()))
            .bind(column(messages, |(_, row)| row.headers.encode()))
            .bind(column(messages, |(_, row)| (!row.due_in.is_zero()).then(|| micros(row.due_in))))
    }

    fn bind_history<'q>(&self, query: crate::rows::arrays::Statement<'q>) -> crate::rows::arrays::Statement<'q> {
        let history = &self.history;
        query
            .bind(column(history, |(change, _)| *change))
            .bind(column(history, |(_, entry)| entry.saga.0))
            .bind(column(history, |(_, entry)| entry.step.as_ref().map(saga_core::store::StepId::as_str)))
            .bind(column(history, |(_, entry)| entry.kind.as_str()))
            .bind(column(history, |(_, entry)| i64::from(entry.attempt)))
            .bind(column(history, |(_, entry)| clean(&entry.detail)))
    }
}
