//! What is answered without a handler: replays, and what the store refuses.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use saga_core::store::{RetryClass, StoreError, StoreErrorKind};

use super::accepted::AcceptedSaga;
use super::kept::Kept;
use super::soon::SOON;
use crate::Problem;

/// The response that was kept.
pub(super) fn replayed(bytes: &[u8]) -> Response {
    let Some(kept) = Kept::decode(bytes) else {
        tracing::error!("a kept response cannot be read; a newer version may have written it");
        let detail = "the response to this key is kept in a form that this server cannot read";
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).into_response();
    };
    let saga = kept.saga.clone();
    let mut response = kept.replay();
    response.extensions_mut().extend(saga.map(AcceptedSaga).map(one).unwrap_or_default());
    response
}

fn one(saga: AcceptedSaga) -> http::Extensions {
    let mut extensions = http::Extensions::new();
    extensions.insert(saga);
    extensions
}

pub(super) fn in_flight() -> Problem {
    let detail = "the same request is still running; send it again with the same key, or with `Prefer: wait=10`";
    Problem::new(StatusCode::CONFLICT, detail).retry_after(SOON)
}

/// The handler panicked, or its task was ended.
pub(super) fn handler_failed() -> Problem {
    let detail = "the server failed while it handled the request; send it again with the same key";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
}

pub(super) fn other_request() -> Problem {
    let detail = "the key belongs to another request; repeat that request as it was, or use a new key";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// The store failed. What it says of itself is for the log, not for clients.
pub(super) fn unavailable(error: &StoreError) -> Problem {
    match (error.kind(), error.class()) {
        (_, RetryClass::Unknown) => {
            tracing::warn!(%error, "request in doubt");
            let detail = "it is not known whether the request took effect; send it again with the same key to find out";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(SOON)
        }
        (StoreErrorKind::Conflict, _) => {
            let detail = "the request met another one that wrote the same; nothing was done, so send it again";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(SOON)
        }
        (_, RetryClass::Transient) => {
            tracing::warn!(%error, "request failed");
            let detail = "the store cannot be reached; nothing was done, so send the request again with the same key";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(SOON)
        }
        (_, RetryClass::Permanent) => {
            tracing::error!(%error, "request failed");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the server could not keep the request; nothing was done")
        }
    }
}
