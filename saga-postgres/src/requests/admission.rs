//! Whether a request may run, as the server says it.

use saga_core::store::{Admission, StoreError, StoreErrorKind};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

/// An answer about a key: its verdict, the epoch and the response that was kept.
pub(crate) fn admission(row: &PgRow) -> Result<Admission<u64>, sqlx::Error> {
    Ok(match row.try_get(0)? {
        "granted" => Admission::Granted(row.try_get::<Option<i64>, _>(1)?.unwrap_or(0).unsigned_abs()),
        "replay" => Admission::Replay(row.try_get(2)?),
        "in-flight" => Admission::InFlight,
        _ => Admission::OtherRequest,
    })
}

/// What the server says of the lock of a key.
pub(crate) struct Lock {
    pub(crate) is_read_only: bool,
    /// Above every epoch that the key ever had, also if its row was deleted meanwhile.
    first_epoch: i64,
    is_taken: bool,
}

impl Lock {
    pub(crate) fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        // There is no answer about the lock where there is no key.
        let is_taken = row.try_get::<Option<bool>, _>(2)?.unwrap_or(true);
        Ok(Self { is_read_only: row.try_get(0)?, first_epoch: row.try_get(1)?, is_taken })
    }

    /// Whether the request may run, by what is kept under its key: the verdict, the epoch and the response.
    pub(crate) fn admission(&self, kept: Option<&PgRow>) -> Result<Admission<u64>, sqlx::Error> {
        if !self.is_taken {
            return Ok(Admission::InFlight);
        }
        let first = Admission::Granted(self.first_epoch.unsigned_abs());
        let Some(kept) = kept else { return Ok(first) };
        Ok(match admission(kept)? {
            Admission::Granted(epoch) => Admission::Granted(self.first_epoch.unsigned_abs().max(epoch + 1)),
            refused => refused,
        })
    }
}

/// A function of the schema answers with one row.
pub(crate) fn unanswered(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, operation, "the server answered without a row")
}
