//! Rows as values of the contract.

use std::time::Duration;

use saga_core::key::{Key, Tenant};
use saga_core::store::{
    DefinitionId, Headers, MemberId, Message, RecordedOutcome, Reported, SagaId, SagaRow, Status, StepId, StepRecord,
    Timestamp, WorkId, WorkKind, WorkRef, WorkStatus,
};
use sqlx::postgres::PgRow;
use sqlx::{Error, Row as _};

use crate::clock::{Moment, duration};

/// A value of the contract that is read from a row.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &PgRow) -> Result<Self, Error>;
}

/// The columns of a [`SagaRow`], and their tables.
pub(crate) const SELECT_SAGAS: &str = "SELECT s.id, s.tenant, s.key, d.name, d.version, s.digest, p.status, p.version, \
     p.state, s.input, s.input_hash, s.started_at, p.advanced_at, p.ended_at \
     FROM {schema}.sagas s JOIN {schema}.progress p ON p.id = s.id JOIN {schema}.definitions d ON d.id = s.definition ";

/// The columns of a [`WorkStatus`].
pub(crate) const WORK_COLUMNS: &str = "id, kind, step, attempts, due_at, owner, retrying_since, error, epoch, maybe, \
     payload, report, reported_at, progress";

/// Reads the work of the sagas that satisfy the condition. Very many rows may wait, so an index leads to them. Few rows are leased.
pub(crate) fn select_work(columns: &str, saga: &str) -> String {
    let of = |owner| format!("SELECT {columns} FROM {{schema}}.work WHERE owner {owner} AND saga {saga}");
    format!("{} UNION ALL {} ORDER BY id", of("IS NULL"), of("IS NOT NULL"))
}

/// The columns of a [`StepRecord`].
pub(crate) const SELECT_RECORDS: &str = "SELECT r.step, r.outcome, r.output, r.error, r.input, r.position, r.attempts, \
     r.recorded_at, r.took_micros FROM {schema}.records r ";

impl FromRow for SagaRow {
    fn from_row(row: &PgRow) -> Result<Self, Error> {
        let digest: &[u8] = row.try_get(5)?;
        Ok(Self {
            id: SagaId(row.try_get(0)?),
            tenant: tenant(row, 1)?,
            key: key(row, 2)?,
            definition: DefinitionId { name: text(row, 3)?.into(), version: narrow(row, 4)? },
            digest: digest.try_into().map_err(|_| unreadable(5, "a digest has 32 bytes"))?,
            status: parsed(row, 6, Status::parse)?,
            version: unsigned(row, 7)?,
            state: row.try_get(8)?,
            input: row.try_get(9)?,
            input_hash: row.try_get(10)?,
            started_at: moment(row, 11)?,
            advanced_at: moment(row, 12)?,
            ended_at: moment_or_none(row, 13)?,
        })
    }
}

impl FromRow for StepRecord {
    fn from_row(row: &PgRow) -> Result<Self, Error> {
        Ok(Self {
            step: step(row, 0)?,
            outcome: parsed(row, 1, RecordedOutcome::parse)?,
            output: row.try_get(2)?,
            error: row.try_get(3)?,
            input: row.try_get(4)?,
            position: narrow(row, 5)?,
            attempts: narrow(row, 6)?,
            recorded_at: moment(row, 7)?,
            took: micros(row, 8)?,
        })
    }
}

impl FromRow for WorkStatus {
    fn from_row(row: &PgRow) -> Result<Self, Error> {
        Ok(Self {
            work: WorkRef { id: WorkId(row.try_get(0)?), epoch: unsigned(row, 8)? },
            kind: parsed(row, 1, WorkKind::parse)?,
            step: step(row, 2)?,
            attempts: narrow(row, 3)?,
            in_doubt: row.try_get(9)?,
            due_at: moment(row, 4)?,
            owner: row.try_get::<Option<i64>, _>(5)?.map(MemberId),
            retrying_since: moment_or_none(row, 6)?,
            error: row.try_get(7)?,
            payload: row.try_get(10)?,
            reported: reported(row, 11)?,
        })
    }
}

/// The three columns of a progress report, if there is one.
pub(crate) fn reported(row: &PgRow, index: usize) -> Result<Option<Reported>, Error> {
    if row.try_get::<Option<i64>, _>(index)?.is_none() {
        return Ok(None);
    }
    let (number, at) = (unsigned(row, index)?, moment(row, index + 1)?);
    Ok(Some(Reported { number, at, progress: row.try_get(index + 2)? }))
}

pub(crate) fn step(row: &PgRow, index: usize) -> Result<StepId, Error> {
    text(row, index).map(StepId::from_stored)
}

pub(crate) fn tenant(row: &PgRow, index: usize) -> Result<Tenant, Error> {
    Tenant::from_stored(text(row, index)?).map_err(|error| unreadable(index, error))
}

pub(crate) fn key(row: &PgRow, index: usize) -> Result<Key, Error> {
    Key::from_stored(text(row, index)?).map_err(|error| unreadable(index, error))
}

/// A whole message.
pub(crate) fn message(row: &PgRow, index: usize) -> Result<Message, Error> {
    Message::decode(row.try_get(index)?).map_err(|error| unreadable(index, error))
}

pub(crate) fn message_or_none(row: &PgRow, index: usize) -> Result<Option<Message>, Error> {
    let bytes: Option<&[u8]> = row.try_get(index)?;
    bytes.map(Message::decode).transpose().map_err(|error| unreadable(index, error))
}

/// The headers of a message.
pub(crate) fn headers(row: &PgRow, index: usize) -> Result<Headers, Error> {
    Headers::decode(text(row, index)?).map_err(|error| unreadable(index, error))
}

/// Parses a stored word of the contract.
pub(crate) fn parsed<T>(row: &PgRow, index: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T, Error> {
    let word = text(row, index)?;
    parse(word).ok_or_else(|| unreadable(index, format!("{word:?} is not a value of this version")))
}

pub(crate) fn text(row: &PgRow, index: usize) -> Result<&str, Error> {
    row.try_get(index)
}

pub(crate) fn moment(row: &PgRow, index: usize) -> Result<Timestamp, Error> {
    row.try_get::<Moment, _>(index).map(|moment| moment.0)
}

pub(crate) fn moment_or_none(row: &PgRow, index: usize) -> Result<Option<Timestamp>, Error> {
    row.try_get::<Option<Moment>, _>(index).map(|moment| moment.map(|moment| moment.0))
}

pub(crate) fn unsigned(row: &PgRow, index: usize) -> Result<u64, Error> {
    u64::try_from(row.try_get::<i64, _>(index)?).map_err(|error| unreadable(index, error))
}

pub(crate) fn narrow(row: &PgRow, index: usize) -> Result<u32, Error> {
    u32::try_from(row.try_get::<i64, _>(index)?).map_err(|error| unreadable(index, error))
}

pub(crate) fn micros(row: &PgRow, index: usize) -> Result<Duration, Error> {
    row.try_get::<i64, _>(index).map(duration)
}

/// A count or an epoch as PostgreSQL's integer. None comes near the limit.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A limit as PostgreSQL's integer.
pub(crate) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Free text for PostgreSQL, which has no zero byte.
pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Separates a row that this version cannot read from a failure of the call.
pub(crate) fn readable<T>(read: Result<T, Error>) -> Result<Result<T, String>, Error> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(Error::ColumnDecode { source: problem, .. } | Error::Decode(problem)) => Ok(Err(problem.to_string())),
        Err(error) => Err(error),
    }
}

pub(crate) fn unreadable(index: usize, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::ColumnDecode { index: index.to_string(), source: error.into() }
}
