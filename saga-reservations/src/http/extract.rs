//! What is read of a request, with problems where it cannot be read.

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use saga_http::{Problem, idempotency_key};
use serde::de::DeserializeOwned;

use super::problem::refused;
use crate::book::{ReservationKey, ResourceName};

/// The body as JSON.
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Json::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(rejection) => Err(Problem::new(rejection.status(), rejection.body_text())),
        }
    }
}

/// The key of a new reservation: the header `Idempotency-Key`.
///
/// The store of reservations keeps the key with its effect, in one commit. So the request needs no second record of keys.
pub(super) struct NewKey(pub(super) ReservationKey);

impl<S: Send + Sync> FromRequestParts<S> for NewKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let key = idempotency_key(&parts.headers)?.ok_or_else(|| {
            let detail = "a reservation needs an Idempotency-Key; make one, such as a UUID, and send the same one with \
                          each retry";
            Problem::new(StatusCode::BAD_REQUEST, detail)
        })?;
        ReservationKey::new(key).map(Self).map_err(|error| refused(&error.into()))
    }
}

/// The key in the path.
pub(super) struct KeyInPath(pub(super) ReservationKey);

impl<S: Send + Sync> FromRequestParts<S> for KeyInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        ReservationKey::new(text_in_path(parts, state).await?).map(Self).map_err(|error| refused(&error.into()))
    }
}

/// The name of a resource in the path.
pub(super) struct NameInPath(pub(super) ResourceName);

impl<S: Send + Sync> FromRequestParts<S> for NameInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        ResourceName::new(text_in_path(parts, state).await?).map(Self).map_err(|error| refused(&error.into()))
    }
}

async fn text_in_path<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, Problem> {
    let path = Path::<String>::from_request_parts(parts, state).await;
    path.map(|Path(text)| text).map_err(|rejection| Problem::new(rejection.status(), rejection.body_text()))
}
