//! Maps errors of PostgreSQL and sqlx to those of the contract.

use std::borrow::Cow;

use saga_core::store::{RetryClass, StoreError, StoreErrorKind};
use sqlx::Error;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgSeverity};

/// The transaction refuses every statement because one failed.
pub(crate) const FAILED_TRANSACTION: &str = "25P02";
/// There is no transaction.
pub(crate) const NO_TRANSACTION: &str = "25P01";
/// There is no such savepoint.
pub(crate) const NO_SAVEPOINT: &str = "3B001";
/// A step sent `COMMIT`, and the store's own trigger refused it.
pub(crate) const REFUSED_COMMIT: &str = "SG001";
/// There is no such cursor.
pub(crate) const NO_CURSOR: &str = "34000";
/// There is no such prepared statement.
pub(crate) const NO_STATEMENT: &str = "26000";

/// When that is committed what a statement writes, and so what a failure says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commits {
    /// With the statement.
    AtOnce,
    /// With the transaction around it.
    Later,
}

impl Commits {
    /// The error of the statement.
    pub(crate) fn failed(self, operation: &'static str, error: Error) -> StoreError {
        match self {
            Self::AtOnce => commit_error(operation, error),
            Self::Later => store_error(operation, error),
        }
    }

    /// The error of what is read behind the statement: what that wrote may be committed by then.
    pub(crate) fn failed_behind(self, error: StoreError) -> StoreError {
        match self {
            Self::AtOnce => {
                let detail = format!("it was done, but its answer could not be read ({})", error.detail());
                StoreError::new(StoreErrorKind::UnknownCommit, error.operation(), detail).with_source(error)
            }
            Self::Later => error,
        }
    }
}

/// The error of a statement whose transaction has not committed.
pub(crate) fn store_error(operation: &'static str, error: Error) -> StoreError {
    let (kind, class) = classify(&error);
    StoreError::new(kind, operation, sentence(&error)).with_class(class).with_source(error)
}

/// The error of a commit, or of an autocommitted statement: it may be unknown whether it took place.
pub(crate) fn commit_error(operation: &'static str, error: Error) -> StoreError {
    if was_refused(&error) {
        return store_error(operation, error);
    }
    let detail = format!("the answer to the commit did not arrive ({})", sentence(&error));
    StoreError::new(StoreErrorKind::UnknownCommit, operation, detail).with_source(error)
}

/// The error of a `BEGIN`. No step has run, so none is to blame; after a switchover the server may be a standby.
pub(crate) fn begin_error(operation: &'static str, error: Error) -> StoreError {
    if sql_state(&error).is_some_and(|state| matches!(&*state, "0A000" | "25006")) {
        return not_writable(operation, &sentence(&error)).with_source(error);
    }
    let (kind, class) = classify(&error);
    let (kind, class) = match kind {
        StoreErrorKind::Other | StoreErrorKind::Misuse => (StoreErrorKind::Unavailable, RetryClass::Transient),
        _ => (kind, class),
    };
    StoreError::new(kind, operation, sentence(&error)).with_class(class).with_source(error)
}

/// The error of a transaction on a server that takes no writes.
pub(crate) fn not_writable(operation: &'static str, said: &str) -> StoreError {
    let detail = format!("the server is a standby or read-only ({said}); waiting for one that can be written");
    StoreError::new(StoreErrorKind::NotWritable, operation, detail).with_class(RetryClass::Transient)
}

/// The error of a commit of handlers' writes. If the server reports a missing right or relation here, a deferred
/// trigger of the application failed: the runtime's own triggers raise no such error.
pub(crate) fn handlers_commit_error(operation: &'static str, error: Error) -> StoreError {
    let is_of_trigger = sql_state(&error).is_some_and(|state| is_unwritable(&state) || state.starts_with("XX"));
    if is_of_trigger && was_refused(&error) {
        return StoreError::new(StoreErrorKind::Other, operation, sentence(&error)).with_source(error);
    }
    commit_error(operation, error)
}

/// The state of a statement of the store that failed where an earlier one of the same transaction worked: a step
/// changed its role, or made the transaction read-only.
pub(crate) fn is_unwritable(state: &str) -> bool {
    matches!(state, "25006" | "42501" | "42P01" | "42883" | "3F000")
}

/// An error when the store is opened: one sentence that names the server, and never a password.
pub(crate) fn open_error(options: &PgConnectOptions, error: Error) -> StoreError {
    let server = server_name(options);
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    let user = options.get_username();
    let (kind, class, detail) = match sql_state(&error).as_deref() {
        Some("28P01" | "28000") => (
            StoreErrorKind::Unavailable,
            RetryClass::Permanent,
            format!("{server} refused user {user:?} ({}); check the user name and the password", sentence(&error)),
        ),
        Some("3D000") => (
            StoreErrorKind::NotAStore,
            RetryClass::Permanent,
            format!("{server} has no database {database:?}; create it, or name another one"),
        ),
        Some("42501") => (
            StoreErrorKind::NotWritable,
            RetryClass::Permanent,
            format!(
                "user {user:?} lacks a right on database {database:?} of {server} ({}); grant it, or let an owner open the store once",
                sentence(&error)
            ),
        ),
        _ => {
            let (kind, class) = classify(&error);
            (kind, class, format!("database {database:?} of {server} cannot be opened: {}", sentence(&error)))
        }
    };
    StoreError::new(kind, "open", detail).with_class(class).with_source(error)
}

pub(crate) fn misuse(operation: &'static str, detail: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Misuse, operation, detail)
}

pub(crate) fn conflict(operation: &'static str, detail: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Conflict, operation, detail)
}

/// A task of the store ended without an answer.
pub(crate) fn task_ended(operation: &'static str) -> StoreError {
    let detail = "the task of the call ended before it answered: it panicked, or the runtime stopped";
    StoreError::new(StoreErrorKind::UnknownCommit, operation, detail)
}

pub(crate) fn sql_state(error: &Error) -> Option<Cow<'_, str>> {
    error.as_database_error().and_then(DatabaseError::code)
}

/// Whether the server answered with an error and kept the session, so that the connection is still usable.
pub(crate) fn is_answer_of_server(error: &StoreError) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<Error>());
    matches!(source, Some(Error::Database(answer)) if leaves_session(&**answer))
}

/// The server ends the session after an error that is fatal.
fn leaves_session(answer: &dyn DatabaseError) -> bool {
    let answer = answer.try_downcast_ref::<PgDatabaseError>();
    answer.is_some_and(|answer| answer.severity() == PgSeverity::Error)
}

/// Whether the server aborted the statement in favour of another transaction.
pub(crate) fn is_conflict(error: &Error) -> bool {
    sql_state(error).is_some_and(|state| matches!(&*state, "40001" | "40P01" | "55P03"))
}

fn server_name(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => format!("the server at {}", socket.display()),
        None => format!("the server at {}:{}", options.get_host(), options.get_port()),
    }
}

/// The error in one line.
pub(crate) fn sentence(error: &Error) -> String {
    let text = match error {
        Error::Database(error) => error.message().to_owned(),
        Error::PoolTimedOut => "no connection was free in time".to_owned(),
        Error::PoolClosed => "the store is closed".to_owned(),
        other => other.to_string(),
    };
    text.replace('\n', " ")
}

/// Whether the server certainly answered that it did not commit.
fn was_refused(error: &Error) -> bool {
    match error {
        // A server that ends a connection may have committed before it did. An internal error that leaves the session
        // alive ended the transaction: the server cannot raise one after a commit without restarting.
        Error::Database(answer) => sql_state(error).is_some_and(|state| {
            !["57P", "08", "58"].iter().any(|class| state.starts_with(class))
                && (!state.starts_with("XX") || leaves_session(&**answer))
        }),
        // Nothing was sent.
        Error::PoolTimedOut | Error::PoolClosed | Error::Encode(_) => true,
        _ => false,
    }
}

fn classify(error: &Error) -> (StoreErrorKind, RetryClass) {
    match error {
        Error::Database(_) => classify_state(&sql_state(error).unwrap_or_default()),
        Error::PoolTimedOut
        | Error::Io(_)
        | Error::WorkerCrashed
        | Error::Protocol(_)
        | Error::BeginFailed
        // The application's pool handed out a connection inside a transaction.
        | Error::InvalidSavePointStatement => (StoreErrorKind::Unavailable, RetryClass::Transient),
        Error::PoolClosed | Error::Tls(_) | Error::Configuration(_) => {
            (StoreErrorKind::Unavailable, RetryClass::Permanent)
        }
        Error::ColumnDecode { .. }
        | Error::Decode(_)
        | Error::ColumnNotFound(_)
        | Error::ColumnIndexOutOfBounds { .. }
        | Error::TypeNotFound { .. }
        | Error::RowNotFound => (StoreErrorKind::Corrupt, RetryClass::Permanent),
        _ => (StoreErrorKind::Other, RetryClass::Permanent),
    }
}

fn classify_state(state: &str) -> (StoreErrorKind, RetryClass) {
    match state {
        "40001" | "40P01" | "55P03" => (StoreErrorKind::Conflict, RetryClass::Transient),
        // An operator may make room on a full disk while the program runs.
        "53100" => (StoreErrorKind::Full, RetryClass::Transient),
        "25006" | "42501" => (StoreErrorKind::NotWritable, RetryClass::Permanent),
        "3D000" | "3F000" | "42P01" | "42883" | "42703" => (StoreErrorKind::NotAStore, RetryClass::Permanent),
        "28P01" | "28000" => (StoreErrorKind::Unavailable, RetryClass::Permanent),
        // An error of the store's own statements: an id that is used, for example.
        "23505" => (StoreErrorKind::Misuse, RetryClass::Permanent),
        _ if ["08", "53", "57", "25P03"].iter().any(|class| state.starts_with(class)) => {
            (StoreErrorKind::Unavailable, RetryClass::Transient)
        }
        _ if state.starts_with("XX") => (StoreErrorKind::Corrupt, RetryClass::Permanent),
        _ => (StoreErrorKind::Other, RetryClass::Permanent),
    }
}
