//! The routes of resources, and of the server's own state.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use saga_http::Problem;

use super::extract::{Body, NameInPath};
use super::messages::{CapacityBody, ShownResource};
use super::problem::{problem, refused};
use super::store::Store;
use crate::book::{Reason, Refusal};

pub(super) async fn set_capacity(
    State(store): State<Store>,
    NameInPath(name): NameInPath,
    Body(body): Body<CapacityBody>,
) -> Result<Json<ShownResource>, Problem> {
    let answer = store.set_capacity(&name, body.capacity).await;
    answer.map(|resource| Json(resource.into())).map_err(|error| problem(&error))
}

pub(super) async fn find(
    State(store): State<Store>,
    NameInPath(name): NameInPath,
) -> Result<Json<ShownResource>, Problem> {
    match store.resource(&name).await.map_err(|error| problem(&error))? {
        Some(resource) => Ok(Json(resource.into())),
        None => Err(refused(&Refusal::new(Reason::NotFound, format!("there is no resource {name}")))),
    }
}

/// Whether the store answers.
pub(super) async fn health(State(store): State<Store>) -> Result<StatusCode, Problem> {
    store.ping().await.map(|()| StatusCode::NO_CONTENT).map_err(|error| problem(&error))
}
