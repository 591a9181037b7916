//! What is done in one transaction.

use std::error::Error;
use std::future::Future;
#[cfg(feature = "postgres")]
use std::time::Duration;

use saga_core::store::{StoreError, StoreErrorKind};
use saga_sql::{SqlConn, SqlError};

use crate::ReservationsError;

/// What is done in one transaction. It may be done again when the transaction could not commit.
pub(super) trait Work: Send + Sync + 'static {
    type Answer: Send + 'static;

    /// It, in the words of an error: "cannot ..".
    const OPERATION: &'static str;

    /// `clock_shift` is how far a test moved the clock, in microseconds.
    fn run<C: SqlConn>(
        &self,
        conn: &mut C,
        clock_shift: i64,
    ) -> impl Future<Output = Result<Self::Answer, WorkError>> + Send;

    /// Whether it may have written something. If not, nothing is committed: on PostgreSQL, the locks that a transaction took are a
    /// reason to write its commit to the disk.
    #[cfg(feature = "postgres")]
    fn has_written(_answer: &Self::Answer) -> bool {
        true
    }
}

/// Why a transaction did not commit.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorkError {
    /// Another transaction inserted the same row at the same time. Once it has committed, its row is found.
    #[error("another transaction made the same reservation at the same time")]
    Race,
    /// Redis has begun another epoch, so it may have lost the hold, or the key that it noted.
    #[cfg(feature = "redis")]
    #[error("Redis began another epoch meanwhile")]
    Fenced,
    #[error(transparent)]
    Sql(#[from] SqlError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] sqlx::Error),
    /// Whether it was committed is unknown.
    #[cfg(feature = "postgres")]
    #[error("PostgreSQL did not answer for {} seconds; the connection is closed", .0.as_secs())]
    Unanswered(Duration),
}

impl WorkError {
    /// Whether nothing was committed and the same transaction may succeed at once.
    pub(super) fn is_conflict(&self) -> bool {
        match self {
            Self::Race => true,
            #[cfg(feature = "redis")]
            Self::Fenced => false,
            Self::Sql(error) => error.source().is_some_and(is_conflict),
            Self::Store(error) => error.kind() == StoreErrorKind::Conflict,
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => is_conflict(error),
            #[cfg(feature = "postgres")]
            Self::Unanswered(_) => false,
        }
    }

    pub(super) fn of(self, operation: &'static str) -> ReservationsError {
        ReservationsError::unavailable(operation, self)
    }
}

/// PostgreSQL's `serialization_failure` and `deadlock_detected`.
#[cfg(feature = "postgres")]
fn is_conflict(error: &(dyn Error + 'static)) -> bool {
    let database = error.downcast_ref::<sqlx::Error>().and_then(sqlx::Error::as_database_error);
    database.and_then(sqlx::error::DatabaseError::code).is_some_and(|code| matches!(&*code, "40001" | "40P01"))
}

#[cfg(not(feature = "postgres"))]
fn is_conflict(_: &(dyn Error + 'static)) -> bool {
    false
}
