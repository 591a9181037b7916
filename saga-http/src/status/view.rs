//! What one request sees: the sagas of its tenant that the application shows it.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use saga_core::engine::SagaSummary;
use saga_core::{RuntimeError, SagaStatus};

use super::sagas::Sagas;
use super::service::{Service, failed};
use crate::Problem;

/// What one request sees.
pub(super) struct View<'a> {
    pub(super) service: &'a Service,
    pub(super) sagas: Arc<dyn Sagas>,
    pub(super) parts: &'a Parts,
}

impl<'a> View<'a> {
    pub(super) fn new(service: &'a Service, sagas: Arc<dyn Sagas>, parts: &'a Parts) -> Self {
        Self { service, sagas, parts }
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

/// The part of the path that names the saga or the letter, unescaped.
pub(super) async fn name_in_path(parts: &mut Parts) -> Result<String, Problem> {
    let named: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, &()).await;
    let Path(name) = named.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error))?;
    Ok(name)
}
