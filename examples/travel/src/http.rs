//! The interface over HTTP, as the README shows it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use saga_core::engine::ControlOutcome;
use saga_core::store::{IdempotencyKeys, Status};
use saga_core::{RuntimeError, SagaFailure};
use saga_http::{Idempotency, Problem, SagaAccepted, Tx, status_routes};
use saga_sql::SqlStore;
use tokio::time::timeout;

use crate::app::Trips;
use crate::trip::{Answer, Itinerary, Trip};

/// How long an itinerary is waited for: shorter than a proxy waits.
const PATIENCE: Duration = Duration::from_secs(30);

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
    if trip.budget_cents < 0 {
        let detail = format!("budget_cents is {}, and a budget is at least 0", trip.budget_cents);
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    tx.start(&trips.book_trip, trip.id.clone(), trip).await
}

async fn itinerary<S: SqlStore>(State(trips): Shared<S>, Path(key): Path<String>) -> Result<Json<Itinerary>, Problem> {
    let running = trips.runtime.attach_to(&trips.book_trip, key.clone()).await.map_err(refused)?;
    match timeout(PATIENCE, running.result()).await {
        Ok(Ok(itinerary)) => Ok(Json(itinerary)),
        Ok(Err(SagaFailure::Runtime(error))) => Err(refused(error)),
        Ok(Err(failure)) => Err(Problem::new(StatusCode::CONFLICT, failure)),
        Err(_) => {
            let detail = format!("the trip is not booked yet; ask again, and see /sagas/{key} for what it waits for");
            Err(Problem::new(StatusCode::CONFLICT, detail).retry_after(Duration::from_secs(1)))
        }
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
    match trips.runtime.cancel(key, "the traveller gave it up").await.map_err(refused)? {
        ControlOutcome::Ended(Status::Completed) => {
            Err(Problem::new(StatusCode::CONFLICT, "the trip is booked already"))
        }
        given_up => Ok(format!("{given_up:?}\n")),
    }
}

fn refused(error: RuntimeError) -> Problem {
    let status = match error {
        RuntimeError::NoSaga(_) => StatusCode::NOT_FOUND,
        RuntimeError::Tombstone { .. } => StatusCode::GONE,
        RuntimeError::Key(_) | RuntimeError::SignalForm { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        RuntimeError::Refused { .. } => StatusCode::CONFLICT,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    Problem::new(status, error)
}
