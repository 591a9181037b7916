//! Why a step transaction did not commit.

use saga_core::store::{RetryClass, StoreError, StoreErrorKind, TransactError, TransactionBody};
use sqlx::PgConnection;

/// The operation in the errors of a step transaction.
pub(crate) const OPERATION: &str = "transact";

pub(crate) type Body = Box<dyn TransactionBody<PgConnection>>;

/// Why a step transaction was aborted.
pub(crate) struct Aborted {
    pub(crate) error: TransactError,
    /// Whether the state of the connection is unknown, so that it must be closed.
    pub(crate) breaks_connection: bool,
}

impl Aborted {
    pub(crate) fn blame(index: usize, error: StoreError) -> Self {
        let error = TransactError { error, culprit: Some(index), ended_transaction: false };
        Self { error, breaks_connection: false }
    }

    pub(crate) fn breaking_connection(self) -> Self {
        Self { breaks_connection: true, ..self }
    }

    /// The handler ended the transaction that it was given.
    pub(crate) fn ended(index: usize) -> Self {
        let detail = "a handler ended the transaction that it was given";
        let mut stopped =
            Self::blame(index, StoreError::new(StoreErrorKind::Misuse, OPERATION, detail)).breaking_connection();
        stopped.error.ended_transaction = true;
        stopped
    }

    /// The handler ignored that a statement failed.
    pub(crate) fn failed(index: usize) -> Self {
        let detail = "a statement of the handler failed, and it went on as if nothing had happened";
        let error = StoreError::new(StoreErrorKind::Other, OPERATION, detail);
        Self::blame(index, error.with_class(RetryClass::Transient))
    }

    /// A handler left the transaction in a state in which the store cannot record.
    pub(crate) fn unwritable(error: &StoreError, culprit: Option<usize>) -> Self {
        let detail = format!(
            "a step left its transaction unwritable ({}); it must reset what it sets, such as its role or READ ONLY, before it \
             returns",
            error.detail()
        );
        let error = StoreError::new(StoreErrorKind::Other, OPERATION, detail);
        Self { error: TransactError { error, culprit, ended_transaction: false }, breaks_connection: false }
    }

    pub(crate) fn panicked(index: usize) -> Self {
        let error = StoreError::new(StoreErrorKind::Other, OPERATION, "a handler panicked");
        Self::blame(index, error.with_class(RetryClass::Transient)).breaking_connection()
    }
}

/// An error of the store itself: the writes are undone.
impl From<StoreError> for Aborted {
    fn from(error: StoreError) -> Self {
        Self { error: error.into(), breaks_connection: false }
    }
}
