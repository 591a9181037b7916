//! Why a step transaction did not commit.

use saga_core::store::{RetryClass, StoreError, StoreErrorKind, TransactError, TransactionBody};
use sqlx::PgConnection;

/// The operation that errors of a step transaction name.
pub(crate) const OPERATION: &str = "transact";

pub(crate) type Body = Box<dyn TransactionBody<PgConnection>>;

/// Why a step transaction did not come to its end.
pub(crate) struct Aborted {
    pub(crate) error: TransactError,
    /// Whether the connection may be in a state that nobody knows.
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

    /// The handler kept quiet about a statement that failed.
    pub(crate) fn failed(index: usize) -> Self {
        let detail = "a statement of the handler failed, and it went on as if nothing had happened";
        let error = StoreError::new(StoreErrorKind::Other, OPERATION, detail);
        Self::blame(index, error.with_class(RetryClass::Transient))
    }

    /// A handler left the transaction so that the store cannot record in it.
    pub(crate) fn unwritable(error: &StoreError, culprit: Option<usize>) -> Self {
        let detail = format!(
            "a step left its transaction unwritable ({}); what it sets, such as its role or READ ONLY, it must set back \
             before it returns",
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

/// An error that the store met itself: what was written is taken back.
impl From<StoreError> for Aborted {
    fn from(error: StoreError) -> Self {
        Self { error: error.into(), breaks_connection: false }
    }
}
