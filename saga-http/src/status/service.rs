//! What all routes share: the sagas, the application's rules, and the limits.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::request::Parts;
use futures_util::future::{BoxFuture, Shared};
use saga_core::engine::SagaSummary;
use saga_core::store::{DeadLetter, SagaId};
use saga_core::{RuntimeError, Tenant};
use tokio::sync::Semaphore;

use super::changes::Changes;
use super::polling::Polling;
use super::sagas::Sagas;
use super::view::View;
use crate::Problem;

/// When a client may try again that was refused for lack of room or of a store.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(2);

pub(super) type MaySee<T> = Arc<dyn Fn(&Parts, &T) -> bool + Send + Sync>;
pub(super) type TenantOf = Arc<dyn Fn(&Parts) -> Option<Tenant> + Send + Sync>;

/// The state of the routes.
pub(super) struct Service {
    pub(super) sagas: Arc<dyn Sagas>,
    pub(super) polling: Arc<Polling>,
    pub(super) may_see: MaySee<SagaSummary>,
    pub(super) may_see_letter: Option<MaySee<DeadLetter>>,
    pub(super) tenant: Option<TenantOf>,
    pub(super) waiting: Arc<Semaphore>,
    pub(super) until: Option<Shared<BoxFuture<'static, ()>>>,
}

impl Service {
    /// What this request may look at.
    pub(super) fn view<'a>(&'a self, parts: &'a Parts) -> Result<View<'a>, Problem> {
        let Some(tenant) = &self.tenant else { return Ok(View::new(self, Arc::clone(&self.sagas), parts)) };
        let refused =
            || Problem::new(StatusCode::FORBIDDEN, "the request belongs to no tenant; log in as a user of one");
        let tenant = tenant(parts).ok_or_else(refused)?;
        Ok(View::new(self, self.sagas.of_tenant(tenant), parts))
    }

    /// The changes of a saga from now on.
    pub(super) fn changes(&self, saga: SagaId) -> Result<Changes, Problem> {
        let permit = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            let detail = "too many clients wait for changes; ask again later, or without waiting";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(TRY_AGAIN_AFTER)
        })?;
        Ok(Changes::of(&*self.sagas, &self.polling, saga, permit))
    }

    /// Waits until the server stops.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(super) async fn stops(&self) {
        match self.until.clone() {
            Some(until) => until.await,
            None => std::future::pending().await,
        }
    }
}

/// The answer to a failed question. What the store said is logged, and not shown.
pub(super) fn failed(error: &RuntimeError) -> Problem {
    match error {
        RuntimeError::Key(invalid) => Problem::new(StatusCode::BAD_REQUEST, invalid),
        RuntimeError::UnknownDefinition { .. } | RuntimeError::Unreadable { .. } => {
            tracing::error!(%error, "status not read");
            let detail = "the saga cannot be read by this process; an operator finds the reason in its log";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        }
        error => {
            tracing::error!(%error, "status not read");
            let detail = "the sagas cannot be read at the moment; try again";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(TRY_AGAIN_AFTER)
        }
    }
}
