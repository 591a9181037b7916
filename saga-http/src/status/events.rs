//! One saga as server-sent events: its status now, and again after each change.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use saga_core::SagaStatus;
use tokio::time::{Instant, sleep, sleep_until};

use super::changes::Changes;
use super::failure::TRY_AGAIN_AFTER;
use super::parameters::Parameters;
use super::schema;
use super::service::Service;
use super::shown::Shown;
use super::view::{View, name_in_path};
use crate::Problem;

/// After this time the stream ends, and the browser opens another one: the application decides anew who may see the saga.
const STREAM_MAX: Duration = Duration::from_mins(15);

/// Proxies close a connection on which nothing happens.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// One saga as server-sent events.
///
/// Each event is called `status`. Its data is the saga, its id the revision. The stream begins with the saga now, and ends after the
/// event in which the saga has ended.
#[utoipa::path(
    get,
    path = "/sagas/{key}/events",
    tag = "sagas",
    params(
        ("key" = String, Path, description = "The key of the saga"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The revision that the client saw last"),
    ),
    responses(
        (status = 200, description = "The events", body = schema::SagaStatus, content_type = "text/event-stream"),
        (status = 204, description = "The saga has ended, and the client has seen that"),
        (status = 400, description = "Something of the request cannot be read", body = schema::Problem, content_type = "application/problem+json"),
        (status = 403, description = "The request belongs to no tenant", body = schema::Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such saga that the client may see", body = schema::Problem, content_type = "application/problem+json"),
        (status = 503, description = "The store does not answer, or too many clients wait", body = schema::Problem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "In how many seconds the client may try again"))),
    )
)]
pub(super) async fn events(State(service): State<Arc<Service>>, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let key = name_in_path(&mut parts).await?;
    Parameters::of(&parts, &[])?;
    let known = last_event_id(&parts.headers)?;
    let status = View::of(&service, &parts)?.status(&key).await?;
    if status.summary.status.is_ended() && known == Some(status.revision) {
        // Nothing more will happen. After this status a browser does not ask again.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let changes = service.changes(status.summary.id)?;
    let ends_at = Instant::now() + STREAM_MAX;
    let follow = Follow { service, parts, key, changes, known, ends_at, has_ended: false };
    Ok(Sse::new(follow.into_events()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// The revision that the client saw last.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let id = value.to_str().ok().and_then(|text| text.parse().ok());
    let detail = "Last-Event-ID is not the id of an event; send the id of the last event, which is a number";
    id.map(Some).ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, detail))
}

/// A client that follows a saga.
struct Follow {
    service: Arc<Service>,
    parts: Parts,
    key: String,
    changes: Changes,
    /// The revision that was sent last.
    known: Option<u64>,
    ends_at: Instant,
    has_ended: bool,
}

impl Follow {
    fn into_events(self) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        stream::unfold(self, async |mut follow| {
            let event = follow.next().await?;
            Some((Ok(event), follow))
        })
    }

    /// The next event; `None` after the last one.
    async fn next(&mut self) -> Option<Event> {
        while !self.has_ended {
            let is_read = match status_of(&self.service, &self.parts, &self.key).await {
                Ok(status) if self.known != Some(status.revision) => {
                    self.known = Some(status.revision);
                    self.has_ended = status.summary.status.is_ended();
                    return event(&status);
                }
                Ok(_) => true,
                // A browser that is answered otherwise than by a stream never asks again, so the stream outlasts an outage.
                Err(problem) if problem.status() == StatusCode::SERVICE_UNAVAILABLE => false,
                // The client may no longer see the saga.
                Err(_) => return None,
            };
            let mut stops = pin!(self.service.stops());
            tokio::select! {
                is_told = self.changes.next(), if is_read => if !is_told { return None },
                () = sleep(TRY_AGAIN_AFTER), if !is_read => {}
                () = sleep_until(self.ends_at) => return None,
                () = &mut stops => return None,
            }
        }
        None
    }
}

async fn status_of(service: &Service, parts: &Parts, key: &str) -> Result<SagaStatus, Problem> {
    View::of(service, parts)?.status(key).await
}

fn event(status: &SagaStatus) -> Option<Event> {
    let event = Event::default().event("status").id(status.revision.to_string());
    let event = event.json_data(Shown::of(status));
    event.inspect_err(|error| tracing::error!(%error, "status not encoded")).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use futures_util::StreamExt as _;
    use saga_core::engine::{SagaAdmin, SagaSummary};
    use saga_core::memory::MemoryStore;
    use saga_core::store::{DeadLetter, DeadLetterFilter, DeadLetterId, SagaFilter, SagaId, SagaProgress};
    use saga_core::{Runtime, RuntimeError, Saga, StepError, Tenant, saga_step};
    use tokio::sync::Semaphore;

    use super::super::polling::Polling;
    use super::super::sagas::{Moves, Sagas};
    use super::*;

    /// Sagas that cannot be read while there is an error.
    struct Outage {
        sagas: SagaAdmin<MemoryStore>,
        errors: Mutex<Vec<RuntimeError>>,
    }

    #[async_trait]
    impl Sagas for Outage {
        fn of_tenant(&self, tenant: Tenant) -> Arc<dyn Sagas> {
            self.sagas.of_tenant(tenant)
        }

        async fn status(&self, key: &str) -> Result<Option<SagaStatus>, RuntimeError> {
            let error = self.errors.lock().unwrap().pop();
            match error {
                Some(error) => Err(error),
                None => Sagas::status(&self.sagas, key).await,
            }
        }

        async fn summary(&self, key: &str) -> Result<Option<SagaSummary>, RuntimeError> {
            Sagas::summary(&self.sagas, key).await
        }

        async fn list(&self, filter: SagaFilter) -> Result<Vec<SagaSummary>, RuntimeError> {
            Sagas::list(&self.sagas, filter).await
        }

        async fn progress(&self, sagas: &[SagaId]) -> Result<Vec<SagaProgress>, RuntimeError> {
            Sagas::progress(&self.sagas, sagas).await
        }

        fn moves(&self, saga: SagaId) -> Option<Box<dyn Moves>> {
            Sagas::moves(&self.sagas, saga)
        }

        async fn dead_letters(&self, filter: DeadLetterFilter) -> Result<Vec<DeadLetter>, RuntimeError> {
            Sagas::dead_letters(&self.sagas, filter).await
        }

        async fn dead_letter(&self, id: DeadLetterId) -> Result<Option<DeadLetter>, RuntimeError> {
            Sagas::dead_letter(&self.sagas, id).await
        }
    }

    #[saga_step(no_compensation)]
    async fn greet(_name: String) -> Result<(), StepError> {
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_outlasts_an_outage_of_the_store() {
        let greeting = Saga::named("greeting").input::<String>().step::<greet>().build().unwrap();
        let runtime = Runtime::builder(MemoryStore::new()).saga(&greeting).start().await.unwrap();
        let saga = runtime.start(&greeting, "ada:1", "Ada".to_owned()).await.unwrap();
        saga.outcome().await.unwrap();
        let lost = || {
            let kind = saga_core::store::StoreErrorKind::Unavailable;
            RuntimeError::Store(saga_core::store::StoreError::new(kind, "read", "the connection is lost"))
        };
        let sagas = Arc::new(Outage { sagas: runtime.admin(), errors: Mutex::new(vec![lost(), lost(), lost()]) });
        let service = Arc::new(Service {
            sagas: sagas.clone(),
            polling: Polling::new(sagas.clone()),
            may_see: Arc::new(|_, _| true),
            may_see_letter: None,
            tenant: None,
            waiting: Arc::new(Semaphore::new(1)),
            until: None,
        });
        let changes = service.changes(saga.id()).unwrap();
        let (parts, ()) = http::Request::new(()).into_parts();
        let ends_at = Instant::now() + STREAM_MAX;
        let follow =
            Follow { service, parts, key: "ada:1".to_owned(), changes, known: None, ends_at, has_ended: false };
        let events: Vec<_> = follow.into_events().collect().await;
        assert_eq!(events.len(), 1, "the saga has ended");
        assert!(sagas.errors.lock().unwrap().is_empty(), "each of them was met");
        runtime.shutdown().await;
    }
}
