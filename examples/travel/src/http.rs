//! The interface over HTTP, as the README shows it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use saga_core::store::IdempotencyKeys;
use saga_core::{RuntimeError, SagaFailure};
use saga_http::{Idempotency, Problem, SagaAccepted, Tx, status_routes};
use saga_sql::SqlStore;

use crate::app::Trips;
use crate::trip::{Answer, Itinerary, Trip};

/// The routes. The trips' status is at `/sagas/{key}`. The server stops when `stopped` ends.
pub fn routes<S: SqlStore + IdempotencyKeys>(
    trips: &Arc<Trips<S>>,
    stopped: impl Future<Output = ()> + Send + 'static,
) -> Router {
    // The example has no login: all clients share their keys, and each client sees all trips.
    let idempotency = Idempotency::new(&trips.runtime).principal(|_| Some("anybody".to_owned())).required();
    let status = status_routes(trips.runtime.admin(), |_request, _saga| true).until(stopped);
    Router::new()
        .route("/trips", post(idempotency.handler(book::<S>)))
        .route("/trips/{key}", delete(give_up::<S>))
        .route("/trips/{key}/itinerary", get(itinerary::<S>))
        .route("/trips/{key}/approval", post(approve::<S>))
        .with_state(Arc::clone(trips))
        .merge(status)
}

type Shared<S> = State<Arc<Trips<S>>>;

async fn book<S: SqlStore + IdempotencyKeys>(
    mut tx: Tx<'_, S>,
    State(trips): Shared<S>,
    Json(trip): Json<Trip>,
) -> Result<SagaAccepted, Problem> {
    tx.start(&trips.book_trip, trip.id.clone(), trip).await
}

async fn itinerary<S: SqlStore>(State(trips): Shared<S>, Path(key): Path<String>) -> Result<Json<Itinerary>, Problem> {
    let running = trips.runtime.attach_to(&trips.book_trip, key).await.map_err(refused)?;
    match running.result().await {
        Ok(itinerary) => Ok(Json(itinerary)),
        Err(SagaFailure::Runtime(error)) => Err(refused(error)),
        Err(failure) => Err(Problem::new(StatusCode::CONFLICT, failure)),
    }
}

async fn approve<S: SqlStore>(
    State(trips): Shared<S>,
    Path(key): Path<String>,
    Json(Answer { id, approval }): Json<Answer>,
) -> Result<String, Problem> {
    Ok(format!("{:?}\n", trips.runtime.signal(key, id, &approval).await.map_err(refused)?))
}

async fn give_up<S: SqlStore>(State(trips): Shared<S>, Path(key): Path<String>) -> Result<String, Problem> {
    Ok(format!("{:?}\n", trips.runtime.cancel(key, "the traveller gave it up").await.map_err(refused)?))
}

fn refused(error: RuntimeError) -> Problem {
    let status = match error {
        RuntimeError::NoSaga(_) => StatusCode::NOT_FOUND,
        RuntimeError::Key(_) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    Problem::new(status, error)
}
