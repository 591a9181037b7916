//! The answer to a question that the store did not answer.

use std::time::Duration;

use axum::http::StatusCode;
use saga_core::RuntimeError;

use crate::Problem;

/// When a client may try again that was refused for lack of room or of a store.
pub(super) const TRY_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The answer to a failed question. What the store said is logged, and not shown.
pub(super) fn failed(error: &RuntimeError) -> Problem {
    match error {
        RuntimeError::Key(invalid) => Problem::new(StatusCode::BAD_REQUEST, invalid),
        RuntimeError::UnknownDefinition { .. } | RuntimeError::Unreadable { .. } => {
            tracing::error!(%error, "status not read");
            let detail = "the saga cannot be read by this process; an operator finds the reason in its log";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        }
        error => {
            tracing::error!(%error, "status not read");
            let detail = "the sagas cannot be read at the moment; try again";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(TRY_AGAIN_AFTER)
        }
    }
}
