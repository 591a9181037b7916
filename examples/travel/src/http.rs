//! The interface over HTTP, as the README shows it.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use saga_core::{RuntimeError, SagaFailure, StartError};
use saga_sql::SqlStore;

use crate::app::Trips;
use crate::trip::{Answer, Trip, TripRequest};

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The routes.
pub fn routes<S: SqlStore>(trips: Arc<Trips<S>>) -> Router {
    Router::new()
        .route("/trips", post(book::<S>))
        .route("/trips/{key}", get(status::<S>).delete(give_up::<S>))
        .route("/trips/{key}/itinerary", get(itinerary::<S>))
        .route("/trips/{key}/approval", post(approve::<S>))
        .with_state(trips)
}

type Shared<S> = State<Arc<Trips<S>>>;

/// What went wrong, with a status and a sentence.
struct Problem(StatusCode, String);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.0, Json(serde_json::json!({ "error": self.1 }))).into_response()
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        let status = match error {
            StartError::PayloadMismatch { .. } | StartError::OtherSaga { .. } => StatusCode::CONFLICT,
            StartError::Store(_) | StartError::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self(status, error.to_string())
    }
}

impl From<RuntimeError> for Problem {
    fn from(error: RuntimeError) -> Self {
        let status = match error {
            RuntimeError::NoSaga(_) => StatusCode::NOT_FOUND,
            RuntimeError::Key(_) => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self(status, error.to_string())
    }
}

#[expect(clippy::disallowed_methods, reason = "it is the server's own time, and decides nothing")]
async fn book<S: SqlStore>(
    State(trips): Shared<S>,
    headers: HeaderMap,
    Json(request): Json<TripRequest>,
) -> Result<Response, Problem> {
    let missing = || Problem(StatusCode::BAD_REQUEST, "send an Idempotency-Key, the same for each try".to_owned());
    let key = headers.get(IDEMPOTENCY_KEY).and_then(|key| key.to_str().ok()).ok_or_else(missing)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let trip = Trip { request: request.clone(), received_at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX) };
    // The time differs in each try, so what the client sent tells a repeated request from another one.
    let running = trips.runtime.start(&trips.book_trip, key, trip).fingerprint(&request).await?;
    let address = format!("/trips/{}", running.key());
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, address)]).into_response())
}

async fn status<S: SqlStore>(State(trips): Shared<S>, Path(key): Path<String>) -> Result<Response, Problem> {
    let unknown = || Problem(StatusCode::NOT_FOUND, format!("there is no trip {key}"));
    Ok(Json(trips.runtime.status(&key).await?.ok_or_else(unknown)?).into_response())
}

async fn itinerary<S: SqlStore>(State(trips): Shared<S>, Path(key): Path<String>) -> Result<Response, Problem> {
    let running = trips.runtime.attach_to(&trips.book_trip, key).await?;
    match running.result().await {
        Ok(itinerary) => Ok(Json(itinerary).into_response()),
        Err(SagaFailure::Runtime(error)) => Err(error.into()),
        Err(failure) => Err(Problem(StatusCode::CONFLICT, failure.to_string())),
    }
}

async fn approve<S: SqlStore>(
    State(trips): Shared<S>,
    Path(key): Path<String>,
    Json(Answer { id, approval }): Json<Answer>,
) -> Result<String, Problem> {
    Ok(format!("{:?}\n", trips.runtime.signal(key, id, &approval).await?))
}

async fn give_up<S: SqlStore>(State(trips): Shared<S>, Path(key): Path<String>) -> Result<String, Problem> {
    Ok(format!("{:?}\n", trips.runtime.cancel(key, "the traveller gave it up").await?))
}
