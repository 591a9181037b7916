//! Why a step transaction was aborted, and how far its rollback reaches.

use saga_core::store::{StoreError, StoreErrorKind, TransactError};

use crate::error::{Failure, store_error};

pub(crate) const OPERATION: &str = "transact";

/// Why a step transaction was aborted.
pub(crate) struct Aborted {
    pub(crate) error: TransactError,
    pub(crate) scope: AbortScope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AbortScope {
    /// Back to the savepoint; the other jobs of the group continue. Without a savepoint they run again.
    Job,
    /// The whole transaction is uncertain: it is rolled back, and this job runs again alone.
    Group,
    /// The whole transaction is gone, through this job's fault.
    Permanent,
}

impl Aborted {
    pub(crate) fn blame(index: usize, error: StoreError, scope: AbortScope) -> Self {
        Self { error: TransactError { error, culprit: Some(index), ended_transaction: false }, scope }
    }
}

/// An error of the store itself: the writes are undone, and the other jobs continue.
impl From<StoreError> for Aborted {
    fn from(error: StoreError) -> Self {
        Self { error: error.into(), scope: AbortScope::Job }
    }
}

impl From<rusqlite::Error> for Aborted {
    fn from(error: rusqlite::Error) -> Self {
        Self { error: store_error(OPERATION, error).into(), scope: AbortScope::Group }
    }
}

impl From<Failure> for Aborted {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Sql(error) => error.into(),
            Failure::Refused(error) | Failure::Half(error) => error.into(),
        }
    }
}

pub(crate) fn conflict(detail: String) -> StoreError {
    StoreError::new(StoreErrorKind::Conflict, OPERATION, detail)
}
