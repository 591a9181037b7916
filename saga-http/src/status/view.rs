//! What one request sees: the sagas of its tenant that the application shows it.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use saga_core::engine::SagaSummary;
use saga_core::{RuntimeError, SagaStatus};

use super::failure::failed;
use super::sagas::Sagas;
use super::service::Service;
use crate::Problem;

/// What one request sees.
pub(super) struct View<'a> {
    pub(super) service: &'a Service,
    pub(super) sagas: Arc<dyn Sagas>,
    pub(super) parts: &'a Parts,
}

impl<'a> View<'a> {
    /// What the tenant of this request has.
    pub(super) fn of(service: &'a Service, parts: &'a Parts) -> Result<Self, Problem> {
        let Some(tenant) = &service.tenant else {
            return Ok(Self { service, sagas: Arc::clone(&service.sagas), parts });
        };
        let refused =
            || Problem::new(StatusCode::FORBIDDEN, "the request belongs to no tenant; log in as a user of one");
        let tenant = tenant(parts).ok_or_else(refused)?;
        Ok(Self { service, sagas: service.sagas.of_tenant(tenant), parts })
    }

    /// The saga of this key, if the client may see it. A saga that it may not see is answered as one that does not exist.
    pub(super) async fn status(&self, key: &str) -> Result<SagaStatus, Problem> {
        let may_see = |saga: &SagaSummary| (self.service.may_see)(self.parts, saga);
        match self.sagas.status(key).await {
            Ok(Some(status)) if may_see(&status.summary) => Ok(status),
            Ok(_) => Err(unknown(key)),
            Err(error @ (RuntimeError::UnknownDefinition { .. } | RuntimeError::Unreadable { .. })) => {
                let summary = self.sagas.summary(key).await.map_err(|error| failed(&error))?;
                Err(if summary.is_some_and(|saga| may_see(&saga)) { failed(&error) } else { unknown(key) })
            }
            Err(error) => Err(failed(&error)),
        }
    }
}

fn unknown(key: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is no saga with the key `{key}`"))
}

/// The part of the path that names the saga or the letter, unescaped. It is the last one that is captured: the routes may be
/// nested below a path that captures others.
pub(super) async fn name_in_path(parts: &mut Parts) -> Result<String, Problem> {
    let captured: Result<Path<Vec<(String, String)>>, PathRejection> = Path::from_request_parts(parts, &()).await;
    let Path(mut captured) = captured.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error))?;
    let (_, name) = captured.pop().ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, "the path names nothing"))?;
    Ok(name)
}
