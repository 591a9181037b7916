//! The calls of the scripts, in an epoch that SQL knows.

use std::sync::atomic::{AtomicU64, Ordering};

use saga_redis::__private::{BEGIN_EPOCH, Call, Connection, EpochTurn, Missed, Text};
use saga_redis::RedisOptions;

use super::reply::Reply;
use super::scripts;
use crate::book::ReservationKey;
use crate::{ReservationsError, SqlReservations};

/// How often Redis is asked for one call until it has an epoch that is checked: other processes may begin one as well.
const ASKS_MAX: u32 = 16;

/// The highest epoch: tokens stay below 2^53, where the numbers of JSON and Lua are exact.
const EPOCH_MAX: u64 = (1 << 21) - 1;

/// The low bits of a token count within an epoch.
const COUNTER_BITS: u32 = 32;

/// The epoch in which a token was given out.
pub(super) fn epoch_of(token: u64) -> u64 {
    token >> COUNTER_BITS
}

/// The holds in Redis.
#[derive(Debug)]
pub(super) struct Holds {
    connection: Connection,
    sql: SqlReservations,
    keys: Vec<String>,
    /// The epoch that was SQL's while it was in Redis, or 0.
    checked: AtomicU64,
    turn: EpochTurn,
}

/// What a script answered, and in which epoch.
#[derive(Debug)]
pub(super) struct InEpoch<T> {
    pub(super) epoch: u64,
    pub(super) answer: T,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("other processes began new epochs all the time; do all of them use this database and this Redis?")]
    Epochs,
    #[error("there were {EPOCH_MAX} epochs, and there are no more tokens; use another database")]
    NoMoreTokens,
    #[error("the answer {0:?} of Redis is none of this version; do all processes have the same version?")]
    Answer(Vec<String>),
}

impl Holds {
    pub(super) async fn open(options: RedisOptions, sql: SqlReservations) -> Result<Self, ReservationsError> {
        sql.create_epochs().await?;
        let connecting = Box::pin(Connection::open(options)).await;
        let connection = connecting.map_err(|error| ReservationsError::unavailable("connect to Redis", error))?;
        let keys = scripts::keys(connection.prefix());
        Ok(Self { connection, sql, keys, checked: AtomicU64::new(0), turn: EpochTurn::default() })
    }

    pub(super) fn address(&self) -> &str {
        self.connection.address()
    }

    /// The epoch that SQL had when it was compared last.
    pub(super) fn epoch(&self) -> u64 {
        self.checked.load(Ordering::Acquire)
    }

    /// Has the epoch compared with SQL again.
    pub(super) fn doubt_epoch(&self) {
        self.checked.store(0, Ordering::Release);
    }

    /// Calls a script about a key.
    pub(super) async fn call(
        &self,
        operation: &'static str,
        script: &'static Text,
        key: Option<&ReservationKey>,
        arguments: Vec<String>,
    ) -> Result<InEpoch<Reply>, ReservationsError> {
        let InEpoch { epoch, answer } = self.words(operation, script, arguments).await?;
        Ok(InEpoch { epoch, answer: read(operation, &answer, key)? })
    }

    /// Calls a script about several keys, with an answer for each.
    pub(super) async fn call_for_all(
        &self,
        operation: &'static str,
        script: &'static Text,
        keys: impl Iterator<Item = &ReservationKey>,
        arguments: Vec<String>,
    ) -> Result<Vec<Reply>, ReservationsError> {
        let words = self.words(operation, script, arguments).await?.answer;
        Reply::read_all(&words, keys).ok_or_else(|| unreadable(operation, words))
    }

    /// Calls a script with what SQL had in this epoch. `None` if Redis has another one: SQL must be read again.
    pub(super) async fn call_in(
        &self,
        epoch: u64,
        operation: &'static str,
        script: &'static Text,
        arguments: Vec<String>,
    ) -> Result<Option<Reply>, ReservationsError> {
        let words = self.try_words(epoch, operation, script, &arguments).await?;
        words.map(|words| read(operation, &words, None)).transpose()
    }

    /// The words that a script answers, in an epoch that is checked.
    pub(super) async fn words(
        &self,
        operation: &'static str,
        script: &'static Text,
        arguments: Vec<String>,
    ) -> Result<InEpoch<Vec<String>>, ReservationsError> {
        for _ in 0..ASKS_MAX {
            let epoch = self.epoch();
            if let Some(answer) = self.try_words(epoch, operation, script, &arguments).await? {
                return Ok(InEpoch { epoch, answer });
            }
        }
        Err(ReservationsError::unavailable(operation, Problem::Epochs))
    }

    async fn try_words(
        &self,
        epoch: u64,
        operation: &'static str,
        script: &'static Text,
        arguments: &[String],
    ) -> Result<Option<Vec<String>>, ReservationsError> {
        let view = self.turn.view();
        let mut all = vec![epoch.to_string(), self.sql.clock_moved_by().to_string()];
        all.extend_from_slice(arguments);
        let call = Call::new(operation, script, self.keys.clone(), all);
        let counts = |words: &[String]| words.first().is_some_and(|word| word == "done");
        let called = self.connection.call_confirmed(&call, counts).await;
        let words = called.map_err(|error| ReservationsError::unavailable(operation, error))?.words;
        let in_redis = || words.get(1).and_then(|epoch| epoch.parse().ok()).unwrap_or_default();
        let missed = match words.first().map(String::as_str) {
            Some("stale") => Missed::Stale,
            Some("unchecked") => {
                let current = self.sql.current_epoch().await?;
                if current == in_redis() {
                    self.checked.store(current, Ordering::Release);
                    return Ok(None);
                }
                Missed::Behind(in_redis())
            }
            _ => return Ok(Some(words)),
        };
        self.turn.begin(view, missed, self.begin_epoch(operation, in_redis())).await?;
        Ok(None)
    }

    /// Begins an epoch. It counts when it was compared with SQL afterwards.
    async fn begin_epoch(&self, operation: &'static str, above: u64) -> Result<(), ReservationsError> {
        let epoch = self.sql.raise_epoch(above).await?;
        if epoch > EPOCH_MAX {
            return Err(ReservationsError::unavailable(operation, Problem::NoMoreTokens));
        }
        let keys = scripts::keys_of_epoch(self.connection.prefix());
        let call = Call::new(operation, &BEGIN_EPOCH, keys, [epoch.to_string()]);
        let called = self.connection.call(&call).await;
        called.map_err(|error| ReservationsError::unavailable(operation, error))?;
        tracing::warn!(epoch, "began an epoch of holds: Redis has none that is known");
        Ok(())
    }
}

fn read(operation: &'static str, words: &[String], key: Option<&ReservationKey>) -> Result<Reply, ReservationsError> {
    let reply = Reply::read(words, key);
    reply.ok_or_else(|| unreadable(operation, words.to_vec()))
}

fn unreadable(operation: &'static str, words: Vec<String>) -> ReservationsError {
    ReservationsError::unavailable(operation, Problem::Answer(words))
}
