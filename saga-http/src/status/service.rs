//! What all routes share: the sagas, the application's rules, and the limits.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::request::Parts;
use futures_util::future::{BoxFuture, Shared};
use saga_core::Tenant;
use saga_core::engine::SagaSummary;
use saga_core::store::{DeadLetter, SagaId};
use tokio::sync::Semaphore;

use super::changes::Changes;
use super::failure::TRY_AGAIN_AFTER;
use super::polling::Polling;
use super::sagas::Sagas;
use crate::Problem;

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
