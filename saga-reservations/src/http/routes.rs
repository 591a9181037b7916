use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::routing::{get, post};
use saga_http::Problem;

use super::store::Store;
use super::{operations, resources};

/// The routes of a store. Names in paths are percent-encoded; that of a resource may have slashes as they are.
pub(crate) fn routes(store: Store) -> Router {
    Router::new()
        .route("/v1/reservations", post(operations::reserve))
        .route("/v1/reservations/{key}", get(operations::find))
        .route("/v1/reservations/{key}/confirm", post(operations::confirm))
        .route("/v1/reservations/{key}/release", post(operations::release))
        .route("/v1/reservations/{key}/extend", post(operations::extend))
        .route("/v1/reservations/{key}/return", post(operations::give_back))
        .route("/v1/resources/{*name}", get(resources::find).put(resources::set_capacity))
        .route("/health", get(resources::health))
        .fallback(unknown_route)
        .with_state(store)
}

async fn unknown_route(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is no route {}", uri.path()))
}
