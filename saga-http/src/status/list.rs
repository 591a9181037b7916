//! Lists of sagas.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use saga_core::engine::SagaSummary;
use saga_core::store::{SagaFilter, SagaId, Status};
use serde::Serialize;

use super::parameters::Parameters;
use super::schema;
use super::service::{Service, failed};
use crate::Problem;

/// A page of sagas.
#[derive(Serialize)]
struct Page {
    sagas: Vec<SagaSummary>,
    next: Option<String>,
}

/// A page of sagas, by the order of their starts.
#[utoipa::path(
    get,
    path = "/sagas",
    tag = "sagas",
    params(
        ("status" = Option<schema::Status>, Query, description = "Only sagas of this status"),
        ("definition" = Option<String>, Query, description = "Only sagas of definitions with this name"),
        ("after" = Option<String>, Query, description = "The `next` of the page before"),
        ("limit" = Option<u16>, Query, description = "The most entries of the page, 100 by default", minimum = 1, maximum = 500),
    ),
    responses(
        (status = 200, description = "The page; it may have fewer entries than `limit`, and goes on if `next` is not null", body = schema::SagaPage),
        (status = 400, description = "A parameter is unknown or cannot be read", body = schema::Problem, content_type = "application/problem+json"),
        (status = 403, description = "The request belongs to no tenant", body = schema::Problem, content_type = "application/problem+json"),
        (status = 503, description = "The store does not answer", body = schema::Problem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "In how many seconds the client may try again"))),
    )
)]
pub(super) async fn sagas(State(service): State<Arc<Service>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let parameters = Parameters::of(&parts, &["status", "definition", "after", "limit"])?;
    let filter = SagaFilter {
        status: parameters.one_of("status", &Status::ALL.map(Status::as_str).join(", "), Status::parse)?,
        definition: parameters.text("definition").map(str::to_owned),
        after: parameters.after()?.map(SagaId),
        limit: parameters.limit()?,
        ..SagaFilter::default()
    };
    let limit = filter.limit;
    let mut sagas = service.view(&parts)?.sagas.list(filter).await.map_err(|error| failed(&error))?;
    let next = sagas.last().filter(|_| sagas.len() == limit).map(|saga| saga.id.0.to_string());
    sagas.retain(|saga| (service.may_see)(&parts, saga));
    Ok(Json(Page { sagas, next }).into_response())
}
