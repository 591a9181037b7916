//! Rows as values of the contract.

use std::time::Duration;

use rusqlite::types::{FromSqlError, Type, ValueRef};
use rusqlite::{Connection, Row};
use saga_core::key::{Key, Tenant};
use saga_core::store::{
    DefinitionId, Headers, MemberId, Message, MessageId, RecordedOutcome, Reported, SagaId, SagaRow, Status, StepId,
    StepRecord, Timestamp, WorkId, WorkKind, WorkRef, WorkStatus,
};
use uuid::Uuid;

/// A value of the contract that is read from a row.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self>;
}

/// The columns of a [`SagaRow`], and their tables. A condition follows.
macro_rules! select_sagas {
    ($condition:expr) => {
        concat!(
            "SELECT s.id, s.tenant, s.key, d.name, d.version, s.digest, p.status, p.version, p.state, s.input, ",
            "s.input_hash, s.started_at, p.advanced_at, p.ended_at ",
            "FROM saga_sagas s JOIN saga_progress p ON p.id = s.id JOIN saga_definitions d ON d.id = s.definition ",
            $condition
        )
    };
}
pub(crate) use select_sagas;

impl FromRow for SagaRow {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: SagaId(row.get(0)?),
            tenant: tenant(row, 1)?,
            key: key(row, 2)?,
            definition: DefinitionId { name: text(row, 3)?.into(), version: row.get(4)? },
            digest: row.get(5)?,
            status: status(row, 6)?,
            version: unsigned(row, 7)?,
            state: row.get(8)?,
            input: row.get(9)?,
            input_hash: row.get(10)?,
            started_at: Timestamp(row.get(11)?),
            advanced_at: Timestamp(row.get(12)?),
            ended_at: row.get::<_, Option<i64>>(13)?.map(Timestamp),
        })
    }
}

/// The columns of a [`StepRecord`].
macro_rules! select_records {
    ($condition:expr) => {
        concat!(
            "SELECT step, outcome, output, error, input, position, attempts, recorded_at, took_micros ",
            "FROM saga_records ",
            $condition
        )
    };
}
pub(crate) use select_records;

impl FromRow for StepRecord {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            step: step(row, 0)?,
            outcome: parsed(row, 1, RecordedOutcome::parse)?,
            output: row.get(2)?,
            error: row.get(3)?,
            input: row.get(4)?,
            position: row.get(5)?,
            attempts: row.get(6)?,
            recorded_at: Timestamp(row.get(7)?),
            took: duration(row, 8)?,
        })
    }
}

/// The records of a saga, by position.
pub(crate) fn records_of(conn: &Connection, tenant: &str, key: &str) -> rusqlite::Result<Vec<StepRecord>> {
    conn.prepare_cached(select_records!("WHERE tenant = ?1 AND key = ?2 ORDER BY position, step"))?
        .query_map((tenant, key), StepRecord::from_row)?
        .collect()
}

/// The records of a saga, without those of items and of repeated undos.
pub(crate) fn records_of_steps(conn: &Connection, tenant: &str, key: &str) -> rusqlite::Result<Vec<StepRecord>> {
    conn.prepare_cached(select_records!(
        "WHERE tenant = ?1 AND key = ?2 AND (step NOT LIKE '%#%' OR step LIKE '%#0') ORDER BY position, step"
    ))?
    .query_map((tenant, key), StepRecord::from_row)?
    .collect()
}

impl FromRow for WorkStatus {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            work: WorkRef { id: WorkId(row.get(0)?), epoch: unsigned(row, 8)? },
            kind: parsed(row, 1, WorkKind::parse)?,
            step: step(row, 2)?,
            attempts: row.get(3)?,
            in_doubt: row.get(9)?,
            due_at: Timestamp(row.get(4)?),
            owner: row.get::<_, Option<i64>>(5)?.map(MemberId),
            retrying_since: row.get::<_, Option<i64>>(6)?.map(Timestamp),
            error: row.get(7)?,
            payload: row.get(10)?,
            reported: reported(row, 11)?,
        })
    }
}

/// The three columns of a progress report, if there is one.
pub(crate) fn reported(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Reported>> {
    if !is_set(row, index)? {
        return Ok(None);
    }
    let at = Timestamp(row.get(index + 1)?);
    Ok(Some(Reported { number: unsigned(row, index)?, at, progress: row.get(index + 2)? }))
}

pub(crate) fn status(row: &Row<'_>, index: usize) -> rusqlite::Result<Status> {
    parsed(row, index, Status::parse)
}

pub(crate) fn step(row: &Row<'_>, index: usize) -> rusqlite::Result<StepId> {
    text(row, index).map(StepId::from_stored)
}

pub(crate) fn tenant(row: &Row<'_>, index: usize) -> rusqlite::Result<Tenant> {
    Tenant::from_stored(text(row, index)?).map_err(|error| unreadable(index, error))
}

pub(crate) fn key(row: &Row<'_>, index: usize) -> rusqlite::Result<Key> {
    Key::from_stored(text(row, index)?).map_err(|error| unreadable(index, error))
}

pub(crate) fn message_id(row: &Row<'_>, index: usize) -> rusqlite::Result<MessageId> {
    row.get(index).map(|bytes: [u8; 16]| MessageId(Uuid::from_bytes(bytes)))
}

/// A whole message.
pub(crate) fn message(row: &Row<'_>, index: usize) -> rusqlite::Result<Message> {
    let bytes = row.get_ref(index)?.as_blob().map_err(|error| from_sql(index, error))?;
    Message::decode(bytes).map_err(|error| unreadable(index, error))
}

/// The headers of a message.
pub(crate) fn headers(row: &Row<'_>, index: usize) -> rusqlite::Result<Headers> {
    Headers::decode(text(row, index)?).map_err(|error| unreadable(index, error))
}

/// Pairs of texts as one text: name and value by turns, each after its length.
pub(crate) fn pairs_text(pairs: &[(String, String)]) -> String {
    let mut text = String::new();
    for part in pairs.iter().flat_map(|(name, value)| [name, value]) {
        text.push_str(&part.len().to_string());
        text.push(':');
        text.push_str(part);
    }
    text
}

/// Reads what [`pairs_text`] wrote.
pub(crate) fn pairs(row: &Row<'_>, index: usize) -> rusqlite::Result<Vec<(String, String)>> {
    let mut rest = text(row, index)?;
    let mut next = || {
        let (length, behind) = rest.split_once(':')?;
        let (part, left) = behind.split_at_checked(length.parse().ok()?)?;
        rest = left;
        Some(part.to_owned())
    };
    Ok(std::iter::from_fn(|| Some((next()?, next()?))).collect())
}

/// A message's id as it is stored.
pub(crate) fn id_bytes(id: MessageId) -> [u8; 16] {
    id.0.into_bytes()
}

/// Parses a stored word of the contract.
pub(crate) fn parsed<T>(row: &Row<'_>, index: usize, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let word = text(row, index)?;
    parse(word).ok_or_else(|| unreadable(index, format!("{word:?} is not a value of this version")))
}

pub(crate) fn text<'a>(row: &'a Row<'_>, index: usize) -> rusqlite::Result<&'a str> {
    row.get_ref(index)?.as_str().map_err(|error| from_sql(index, error))
}

pub(crate) fn unsigned(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(index)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(index, number))
}

fn duration(row: &Row<'_>, index: usize) -> rusqlite::Result<Duration> {
    unsigned(row, index).map(Duration::from_micros)
}

/// Whether a column is not NULL, without reading it.
pub(crate) fn is_set(row: &Row<'_>, index: usize) -> rusqlite::Result<bool> {
    Ok(row.get_ref(index)? != ValueRef::Null)
}

/// A count or an epoch as SQLite's integer. None comes near the limit.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A limit as SQLite's integer.
pub(crate) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

fn from_sql(index: usize, error: FromSqlError) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(error))
}

/// Separates a row that this version cannot read from a failure of SQLite.
pub(crate) fn readable<T>(read: rusqlite::Result<T>) -> rusqlite::Result<Result<T, String>> {
    use rusqlite::Error;
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(Error::FromSqlConversionFailure(_, _, problem)) => Ok(Err(problem.to_string())),
        Err(error @ (Error::IntegralValueOutOfRange(..) | Error::InvalidColumnType(..) | Error::Utf8Error(..))) => {
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn unreadable(index: usize, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, error.into())
}
