//! One saga, at once or as soon as it has changed.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use saga_core::SagaStatus;
use saga_core::store::Status;

use super::etag::{IfNoneMatch, etag};
use super::parameters::Parameters;
use super::prefer;
use super::schema;
use super::service::Service;
use super::shown::Shown;
use super::view::{View, name_in_path};
use crate::Problem;

/// The longest wait. Proxies close a connection on which nothing happens for about as long.
const WAIT_MAX: Duration = Duration::from_mins(1);

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// What the client knows, and how long it waits for more.
struct Asked {
    known: Option<IfNoneMatch>,
    wait: Option<Duration>,
}

/// One saga, step by step.
///
/// With `Prefer: wait`, a request with `If-None-Match` is answered as soon as the saga has another revision, and a request without it
/// when the saga has ended or is stuck; after the wait, with what the saga is then.
#[utoipa::path(
    get,
    path = "/sagas/{key}",
    tag = "sagas",
    params(
        ("key" = String, Path, description = "The key of the saga"),
        ("If-None-Match" = Option<String>, Header, description = "The revisions that the client knows"),
        ("Prefer" = Option<String>, Header, description = "How many seconds the client waits, at most 60", example = "wait=30"),
    ),
    responses(
        (status = 200, description = "The saga; one that was compensated too, with the problem inside", body = schema::SagaStatus,
            headers(("ETag" = String, description = "The revision of the saga"),
                ("Preference-Applied" = String, description = "How long the client would have waited"))),
        (status = 304, description = "The client knows the revision of the saga"),
        (status = 400, description = "Something of the request cannot be read", body = schema::Problem, content_type = "application/problem+json"),
        (status = 403, description = "The request belongs to no tenant", body = schema::Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such saga that the client may see", body = schema::Problem, content_type = "application/problem+json"),
        (status = 503, description = "The store does not answer, or too many clients wait", body = schema::Problem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "In how many seconds the client may try again"))),
    )
)]
pub(super) async fn saga(State(service): State<Arc<Service>>, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let key = name_in_path(&mut parts).await?;
    Parameters::of(&parts, &[])?;
    let asked = Asked::of(&parts.headers)?;
    let view = service.view(&parts)?;
    let mut status = view.status(&key).await?;
    if let Some(wait) = asked.wait.filter(|_| !asked.is_answered_by(&status)) {
        status = wait_for_news(&view, status, &asked, wait).await?;
    }
    Ok(answer(&status, &asked))
}

impl Asked {
    fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let wait = prefer::wait(headers).map(|wait| wait.min(WAIT_MAX));
        Ok(Self { known: IfNoneMatch::of(headers)?, wait })
    }

    /// Whether the client waits for nothing more. A client that names a revision waits for another one, and a client that
    /// names none waits for the outcome.
    fn is_answered_by(&self, status: &SagaStatus) -> bool {
        let summary = &status.summary;
        let is_news = match &self.known {
            Some(known) => !known.has(status.revision),
            None => summary.status == Status::Stuck,
        };
        is_news || summary.status.is_ended()
    }

    fn knows(&self, status: &SagaStatus) -> bool {
        self.known.as_ref().is_some_and(|known| known.has(status.revision))
    }
}

/// The saga when it has changed as the client wants, or as it is when the time is over.
async fn wait_for_news(
    view: &View<'_>,
    status: SagaStatus,
    asked: &Asked,
    wait: Duration,
) -> Result<SagaStatus, Problem> {
    let key = status.summary.key;
    let mut changes = view.service.changes(status.summary.id)?;
    let mut is_over = pin!(tokio::time::sleep(wait));
    let mut stops = pin!(view.service.stops());
    loop {
        // A change before the first wait is seen here.
        let status = view.status(key.as_str()).await?;
        if asked.is_answered_by(&status) {
            return Ok(status);
        }
        tokio::select! {
            is_told = changes.next() => if !is_told { return Ok(status) },
            () = &mut is_over => return Ok(status),
            () = &mut stops => return Ok(status),
        }
    }
}

fn answer(status: &SagaStatus, asked: &Asked) -> Response {
    let cache = HeaderValue::from_static("private, no-cache");
    let headers = [(header::ETAG, etag(status.revision)), (header::CACHE_CONTROL, cache)];
    let mut response = if asked.knows(status) {
        (StatusCode::NOT_MODIFIED, headers).into_response()
    } else {
        (headers, Json(Shown::of(status))).into_response()
    };
    if let Some(wait) = asked.wait {
        let applied = HeaderValue::try_from(format!("wait={}", wait.as_secs()));
        response.headers_mut().extend(applied.ok().map(|applied| (PREFERENCE_APPLIED, applied)));
    }
    response
}
