//! Refusals as problems of RFC 9457. The member `reason` has the name that gRPC's `ErrorInfo` has too.

use std::time::Duration;

use axum::http::StatusCode;
use saga_http::Problem;

use crate::ReservationsError;
use crate::book::{Reason, Refusal};

/// When a client is told to try again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

fn status_of(reason: Reason) -> StatusCode {
    match reason {
        Reason::Insufficient | Reason::Conflict | Reason::Duplicate | Reason::WrongState | Reason::BelowTaken => {
            StatusCode::CONFLICT
        }
        Reason::StaleToken => StatusCode::PRECONDITION_FAILED,
        Reason::Expired | Reason::Ended => StatusCode::GONE,
        Reason::KeyReused | Reason::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        Reason::NotFound => StatusCode::NOT_FOUND,
    }
}

pub(super) fn refused(refusal: &Refusal) -> Problem {
    Problem::new(status_of(refusal.reason()), refusal).extension("reason", refusal.reason().as_str())
}

pub(super) fn problem(error: &ReservationsError) -> Problem {
    match error {
        ReservationsError::Refused(refusal) => refused(refusal),
        unavailable @ ReservationsError::Unavailable { .. } => {
            tracing::error!(error = unavailable as &dyn std::error::Error, "reservations do not answer");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, unavailable).retry_after(RETRY_AFTER)
        }
    }
}
