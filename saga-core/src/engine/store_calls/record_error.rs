//! Why a commit of several changes failed.

use crate::store::{RetryClass, StoreError, StoreErrorKind};

/// The error of a commit of several changes, for each of their callers.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{operation}: {detail}")]
pub(crate) struct RecordError {
    pub(crate) kind: StoreErrorKind,
    pub(crate) class: RetryClass,
    pub(crate) operation: &'static str,
    pub(crate) detail: String,
}

impl RecordError {
    /// The commit was not answered, so its outcome is unknown.
    pub(crate) fn unanswered(operation: &'static str, detail: &str) -> Self {
        let (kind, class) = (StoreErrorKind::UnknownCommit, RetryClass::Unknown);
        Self { kind, class, operation, detail: detail.to_owned() }
    }

    pub(crate) fn ended() -> Self {
        Self::unanswered("record", "the runtime has ended, or the task that records panicked")
    }
}

impl From<&StoreError> for RecordError {
    fn from(error: &StoreError) -> Self {
        let (kind, class, operation) = (error.kind(), error.class(), error.operation());
        Self { kind, class, operation, detail: error.detail().to_owned() }
    }
}

pub(crate) fn store_error(error: &RecordError) -> StoreError {
    StoreError::new(error.kind, error.operation, error.detail.clone()).with_class(error.class)
}
