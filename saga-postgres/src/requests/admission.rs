//! Whether a request may run, as the server says it.

use saga_core::store::{Admission, StoreError, StoreErrorKind};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

/// The answer of `admit_request`: its verdict, the epoch and the response that was kept.
pub(crate) fn admission(row: &PgRow) -> Result<Admission<u64>, sqlx::Error> {
    Ok(match row.try_get(0)? {
        "granted" => Admission::Granted(row.try_get::<Option<i64>, _>(1)?.unwrap_or(0).unsigned_abs()),
        "replay" => Admission::Replay(row.try_get(2)?),
        "in-flight" => Admission::InFlight,
        _ => Admission::OtherRequest,
    })
}

/// A function of the schema answers with one row.
pub(crate) fn unanswered(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, operation, "the server answered without a row")
}
