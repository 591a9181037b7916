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
use tokio::time::{Instant, sleep_until};

use super::changes::Changes;
use super::parameters::Parameters;
use super::schema;
use super::service::Service;
use super::shown::Shown;
use super::view::name_in_path;
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
    let status = service.view(&parts)?.status(&key).await?;
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
            // If it cannot be read now, or may no longer be seen, the client has to ask again.
            let status = self.service.view(&self.parts).ok()?.status(&self.key).await.ok()?;
            if self.known != Some(status.revision) {
                self.known = Some(status.revision);
                self.has_ended = status.summary.status.is_ended();
                return event(&status);
            }
            let mut stops = pin!(self.service.stops());
            tokio::select! {
                is_told = self.changes.next() => if !is_told { return None },
                () = sleep_until(self.ends_at) => return None,
                () = &mut stops => return None,
            }
        }
        None
    }
}

fn event(status: &SagaStatus) -> Option<Event> {
    let event = Event::default().event("status").id(status.revision.to_string());
    let event = event.json_data(Shown::of(status));
    event.inspect_err(|error| tracing::error!(%error, "status not encoded")).ok()
}
