//! Maps errors of rusqlite to those of the contract.

use std::path::Path;
use std::sync::Arc;

use rusqlite::ErrorCode;
use saga_core::store::{RetryClass, StoreError, StoreErrorKind};

/// Why a call had no effect.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite failed: the transaction may hold a part of the call's writes.
    Sql(rusqlite::Error),
    /// The call was refused before it wrote anything.
    Refused(StoreError),
    /// The call was refused after a part of it was written.
    Half(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// The error of a statement. Its transaction has not committed.
pub(crate) fn store_error(operation: &'static str, error: rusqlite::Error) -> StoreError {
    let (kind, class) = classify(&error);
    StoreError::new(kind, operation, error.to_string()).with_class(class).with_source(error)
}

/// One error for all calls of a group.
#[derive(Debug, Clone)]
pub(crate) struct GroupError {
    kind: StoreErrorKind,
    class: RetryClass,
    detail: String,
    source: Option<Arc<rusqlite::Error>>,
}

impl GroupError {
    /// Nothing of the group is kept.
    pub(crate) fn definite(error: rusqlite::Error) -> Self {
        let (kind, class) = match error.sqlite_error_code() {
            // A deferred constraint of the user's tables.
            Some(ErrorCode::ConstraintViolation) => (StoreErrorKind::Other, RetryClass::Permanent),
            _ => classify(&error),
        };
        Self { kind, class, detail: error.to_string(), source: Some(Arc::new(error)) }
    }

    /// It is unknown whether the group is kept.
    pub(crate) fn unknown(error: rusqlite::Error) -> Self {
        let detail = format!("the commit failed, and it is unknown whether it is on the disk: {error}");
        // Whether this commit is kept is unknown too, but the remedy is known.
        let is_full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
        let kind = if is_full { StoreErrorKind::Full } else { StoreErrorKind::UnknownCommit };
        let class = RetryClass::Unknown;
        Self { kind, class, detail, source: Some(Arc::new(error)) }
    }

    /// SQLite rolled the transaction back by itself, without an error.
    pub(crate) fn rolled_back_by_sqlite() -> Self {
        let detail = "SQLite rolled the transaction back by itself".to_owned();
        Self { kind: StoreErrorKind::Unavailable, class: RetryClass::Transient, detail, source: None }
    }

    /// The store would write into a file that the next process does not find.
    pub(crate) fn file_moved(path: &Path) -> Self {
        let detail = format!(
            "{} was deleted, moved or replaced while it was open, so no write can be kept; end the process, put the file \
             back, and start again",
            path.display()
        );
        Self { kind: StoreErrorKind::NotWritable, class: RetryClass::Permanent, detail, source: None }
    }

    /// A test lost the answer.
    #[cfg(feature = "fault-injection")]
    pub(crate) fn lost_answer() -> Self {
        let (kind, class) = (StoreErrorKind::UnknownCommit, RetryClass::Unknown);
        Self { kind, class, detail: "the answer to the commit did not arrive".to_owned(), source: None }
    }

    pub(crate) fn of(error: &StoreError) -> Self {
        Self { kind: error.kind(), class: error.class(), detail: error.detail().to_owned(), source: None }
    }

    pub(crate) fn error(&self, operation: &'static str) -> StoreError {
        let error = StoreError::new(self.kind, operation, self.detail.clone()).with_class(self.class);
        match &self.source {
            Some(source) => error.with_source(Arc::clone(source)),
            None => error,
        }
    }
}

/// An error when the file is opened: one sentence that names the file and says what to do.
pub(crate) fn open_error(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.display();
    let (kind, detail) = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            (StoreErrorKind::NotAStore, format!("{path} is not a SQLite database; name another file"))
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => (
            StoreErrorKind::NotWritable,
            format!(
                "{path} cannot be opened ({error}); check the permissions of the file and its folder: SQLite writes files \
                 beside it, also to read it"
            ),
        ),
        Some(ErrorCode::DiskFull) => (StoreErrorKind::Full, format!("the disk of {path} is full; make room")),
        _ => {
            let (kind, class) = classify(&error);
            let detail = format!("{path} cannot be opened: {error}");
            return StoreError::new(kind, "open", detail).with_class(class).with_source(error);
        }
    };
    StoreError::new(kind, "open", detail).with_source(error)
}

pub(crate) fn misuse(operation: &'static str, detail: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Misuse, operation, detail)
}

pub(crate) fn closed(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, operation, "the store is closed; open it again to use it")
        .with_class(RetryClass::Permanent)
}

/// A thread could not be started.
pub(crate) fn no_thread(error: std::io::Error) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "open",
        format!("the store cannot start a thread ({error}); raise the limit of threads of the process"),
    )
    .with_source(error)
}

/// The writer ended before it answered.
pub(crate) fn writer_ended(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::UnknownCommit, operation, "the writer thread ended before it answered")
}

/// A read that did not end.
pub(crate) fn read_failed(operation: &'static str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Other,
        operation,
        "the read panicked, or the store was closed while it ran; the log has the panic",
    )
}

/// The text of a panic.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}

fn classify(error: &rusqlite::Error) -> (StoreErrorKind, RetryClass) {
    use rusqlite::Error as Sql;
    match error {
        Sql::SqliteFailure(failure, _) => classify_code(failure.code),
        Sql::FromSqlConversionFailure(..)
        | Sql::IntegralValueOutOfRange(..)
        | Sql::InvalidColumnType(..)
        | Sql::Utf8Error(..) => (StoreErrorKind::Corrupt, RetryClass::Permanent),
        _ => (StoreErrorKind::Other, RetryClass::Permanent),
    }
}

fn classify_code(code: ErrorCode) -> (StoreErrorKind, RetryClass) {
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (StoreErrorKind::Conflict, RetryClass::Transient),
        ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory | ErrorCode::OperationInterrupted => {
            (StoreErrorKind::Unavailable, RetryClass::Transient)
        }
        // An error of the store's own statements: an id that is used, for example.
        ErrorCode::ConstraintViolation => (StoreErrorKind::Misuse, RetryClass::Permanent),
        // An operator may make room while the program runs, so another try is worth it.
        ErrorCode::DiskFull => (StoreErrorKind::Full, RetryClass::Transient),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
            (StoreErrorKind::NotWritable, RetryClass::Permanent)
        }
        ErrorCode::DatabaseCorrupt => (StoreErrorKind::Corrupt, RetryClass::Permanent),
        ErrorCode::NotADatabase => (StoreErrorKind::NotAStore, RetryClass::Permanent),
        _ => (StoreErrorKind::Other, RetryClass::Permanent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_written_is_named_also_to_who_only_reads() {
        let refused = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN), None);
        let error = open_error(Path::new("orders.db"), refused);
        let said = error.to_string();
        assert_eq!(error.kind(), StoreErrorKind::NotWritable);
        assert!(said.contains("orders.db cannot be opened (") && !said.contains("for writing"), "{said}");
        assert!(said.contains("its folder: SQLite writes files beside it, also to read it"), "{said}");
    }
}
