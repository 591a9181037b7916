//! Lists of sagas.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use saga_core::engine::SagaSummary;
use saga_core::store::{SagaFilter, SagaId, Status};
use serde::Serialize;

use super::parameters::Parameters;
use super::service::{Service, failed};
use crate::Problem;

/// A page of sagas.
#[derive(Serialize)]
struct Page {
    sagas: Vec<SagaSummary>,
    next: Option<String>,
}

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
