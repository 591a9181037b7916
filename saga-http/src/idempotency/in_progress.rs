//! A request on its way: in a task of its own, and waited for as long as its client wants.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, header};
use saga_core::store::{Admission, IdempotencyKeys, KeyedBody};
use tokio::time::timeout_at;

use super::accepted::AcceptedSaga;
use super::answer::{handler_failed, in_flight, other_request, replayed, unavailable};
use super::body::Slot;
use super::incoming::Incoming;
use super::kept::IDEMPOTENT_REPLAYED;
use super::patience::Patience;
use super::settings::Settings;
use crate::status::Shown;

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// A request on its way.
pub(super) struct InProgress<S: IdempotencyKeys> {
    settings: Arc<Settings<S>>,
    incoming: Arc<Incoming>,
}

impl<S: IdempotencyKeys> InProgress<S> {
    pub(super) fn new(settings: Arc<Settings<S>>, incoming: Arc<Incoming>) -> Self {
        Self { settings, incoming }
    }

    /// Runs the bodies that `make` gives, until one is admitted or is not to be waited for.
    pub(super) async fn run(
        self,
        mut make: impl FnMut(Slot) -> Box<dyn KeyedBody<S::Conn>> + Send + 'static,
    ) -> Response {
        let mut patience = Patience::new(self.incoming.wait, &self.settings.places);
        let mut response;
        loop {
            let attempt = attempt(Arc::clone(&self.settings), Arc::clone(&self.incoming), make);
            // A client that goes away drops this future, and not the task.
            match tokio::spawn(attempt).await {
                Ok((Some(answer), _)) => {
                    response = answer;
                    break;
                }
                Ok((None, again)) => {
                    make = again;
                    if !patience.pause().await {
                        return in_flight().into_response();
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "the task of a request ended");
                    return handler_failed().into_response();
                }
            }
        }
        let saga = response.extensions_mut().remove::<AcceptedSaga>();
        match saga {
            Some(AcceptedSaga(key)) => self.outcome(&key, response, &mut patience).await,
            None => response,
        }
    }

    /// The outcome of the saga instead of the response, if it ends in time.
    async fn outcome(&self, key: &str, accepted: Response, patience: &mut Patience) -> Response {
        let Some(runtime) = &self.settings.runtime else { return accepted };
        let Some(until) = patience.wait_until() else { return accepted };
        let runtime = runtime.tenant(self.incoming.tenant.clone());
        let ended = async {
            runtime.attach(key).await?.outcome().await?;
            runtime.status(key).await
        };
        let Ok(Ok(Some(status))) = timeout_at(until, ended).await else { return accepted };
        let mut response = Json(Shown::of(&status)).into_response();
        let headers = response.headers_mut();
        for (from, to) in [(header::LOCATION, header::CONTENT_LOCATION), (IDEMPOTENT_REPLAYED, IDEMPOTENT_REPLAYED)] {
            headers.extend(accepted.headers().get(from).map(|value| (to, value.clone())));
        }
        let seconds = self.incoming.wait.unwrap_or_default().as_secs();
        let applied = HeaderValue::try_from(format!("wait={seconds}"));
        headers.extend(applied.ok().map(|applied| (PREFERENCE_APPLIED, applied)));
        response
    }
}

/// Runs one body. `None` if the key is in flight; the function comes back for the next attempt.
async fn attempt<S: IdempotencyKeys, F>(
    settings: Arc<Settings<S>>,
    incoming: Arc<Incoming>,
    mut make: F,
) -> (Option<Response>, F)
where
    F: FnMut(Slot) -> Box<dyn KeyedBody<S::Conn>> + Send,
{
    let slot = Slot::default();
    let body = make(slot.clone());
    let response = match settings.store.run_once(incoming.keyed.clone(), body).await {
        Ok(Admission::Granted(())) => {
            let left = slot.take();
            if left.keeps_writes {
                slot.committed();
            }
            left.response.unwrap_or_else(|| other_request().into_response())
        }
        Ok(Admission::Replay(bytes)) => replayed(&bytes),
        Ok(Admission::InFlight) => return (None, make),
        Ok(Admission::OtherRequest) => other_request().into_response(),
        Err(error) => {
            let left = slot.take();
            let is_final = left.is_final;
            left.response.filter(|_| is_final).unwrap_or_else(|| unavailable(&error).into_response())
        }
    };
    (Some(response), make)
}
