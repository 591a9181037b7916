//! Handlers without the store's transaction: the key is claimed first, and the response is kept in a second commit.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use saga_core::env::BoxFuture;
use saga_core::store::{Admission, IdempotencyKey, IdempotencyKeys};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt as _};

use super::answer::{handler_failed, in_flight, other_request, replayed, unavailable};
use super::claim::Claim;
use super::incoming::Incoming;
use super::kept::{Fate, Kept};
use super::partial_body::read_as_far_as_it_comes;
use super::patience::Patience;
use super::settings::Settings;

/// A layer that claims the key of a request before it calls the handler, which
/// [`Idempotency::claim_first`](super::Idempotency::claim_first) makes.
pub struct ClaimFirst<S: IdempotencyKeys> {
    settings: Arc<Settings<S>>,
}

/// The service that [`ClaimFirst`] makes.
pub struct ClaimFirstService<S: IdempotencyKeys, T> {
    settings: Arc<Settings<S>>,
    inner: T,
}

/// The key under which a handler behind [`ClaimFirst`] is called: an extension of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedKey {
    key: IdempotencyKey,
    epoch: u64,
}

impl ClaimedKey {
    /// The key.
    pub fn key(&self) -> &IdempotencyKey {
        &self.key
    }

    /// Grows with each call under the key, so that what the handler calls can refuse an older one.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl<S: IdempotencyKeys> ClaimFirst<S> {
    pub(super) fn new(settings: Settings<S>) -> Self {
        Self { settings: Arc::new(settings) }
    }
}

impl<S: IdempotencyKeys, T> Layer<T> for ClaimFirst<S> {
    type Service = ClaimFirstService<S, T>;

    fn layer(&self, inner: T) -> Self::Service {
        ClaimFirstService { settings: Arc::clone(&self.settings), inner }
    }
}

impl<S, T> Service<Request> for ClaimFirstService<S, T>
where
    S: IdempotencyKeys,
    T: Service<Request, Error: Send, Future: Send, Response: IntoResponse + Send> + Clone + Send + 'static,
    T::Error: 'static,
    T::Response: 'static,
{
    type Response = Response;
    type Error = T::Error;
    type Future = BoxFuture<'static, Result<Response, T::Error>>;

    /// It is always ready: the inner service is asked when the key is claimed.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), T::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (settings, inner) = (Arc::clone(&self.settings), self.inner.clone());
        Box::pin(answer(settings, inner, request))
    }
}

async fn answer<S, T>(settings: Arc<Settings<S>>, inner: T, request: Request) -> Result<Response, T::Error>
where
    S: IdempotencyKeys,
    T: Service<Request, Error: Send, Future: Send, Response: IntoResponse + Send> + Clone + Send + 'static,
    T::Error: 'static,
    T::Response: 'static,
{
    let (parts, body) = request.into_parts();
    let scope = match settings.scope_of(&parts) {
        // Nothing is kept of it, so it may be as long as the handler takes.
        Ok((_, None)) => {
            return inner.oneshot(Request::from_parts(parts, body)).await.map(IntoResponse::into_response);
        }
        Ok(scope) => scope,
        Err(refusal) => return Ok(refusal.into_response()),
    };
    let incoming = match Incoming::read_rest(parts, body, scope, &settings).await {
        Ok(incoming) => incoming,
        Err(refusal) => return Ok(refusal.into_response()),
    };
    let mut patience = Patience::new(incoming.wait, &settings.places);
    let incoming = Arc::new(incoming);
    loop {
        let attempt = attempt(Arc::clone(&settings), inner.clone(), Arc::clone(&incoming));
        // A client that goes away drops this future, and not the task: a claim is followed by its call.
        match tokio::spawn(attempt).await {
            Ok(Some(answer)) => return answer,
            Ok(None) if patience.pause().await => {}
            Ok(None) => return Ok(in_flight().into_response()),
            Err(error) => {
                tracing::error!(%error, "the task of a request ended");
                return Ok(handler_failed().into_response());
            }
        }
    }
}

/// Leases the key, and calls the handler if it got it. `None` if another call has the key.
async fn attempt<S, T>(
    settings: Arc<Settings<S>>,
    inner: T,
    incoming: Arc<Incoming>,
) -> Option<Result<Response, T::Error>>
where
    S: IdempotencyKeys,
    T: Service<Request, Error: Send, Future: Send, Response: IntoResponse + Send> + Send + 'static,
    T::Error: 'static,
    T::Response: 'static,
{
    let mut request = incoming.request();
    let Some(keyed) = &incoming.keyed else {
        return Some(inner.oneshot(request).await.map(IntoResponse::into_response));
    };
    let leased_until = Instant::now() + settings.lease_ttl;
    let epoch = match settings.store.claim_key(keyed, settings.lease_ttl).await {
        Ok(Admission::Granted(epoch)) => epoch,
        Ok(Admission::Replay(bytes)) => return Some(Ok(replayed(&bytes))),
        Ok(Admission::OtherRequest) => return Some(Ok(other_request().into_response())),
        Ok(Admission::InFlight) => return None,
        Err(error) => return Some(Ok(unavailable(&error).into_response())),
    };
    request.extensions_mut().insert(ClaimedKey { key: keyed.key.clone(), epoch });
    Some(call(Claim { settings, key: keyed.key.clone(), epoch, leased_until }, inner, request).await)
}

/// Calls the handler under its key, and keeps the response.
async fn call<S, T>(claim: Claim<S>, inner: T, request: Request) -> Result<Response, T::Error>
where
    S: IdempotencyKeys,
    T: Service<Request, Error: Send, Future: Send, Response: IntoResponse + Send> + Send + 'static,
    T::Error: 'static,
    T::Response: 'static,
{
    // In a task of its own, so that a panic does not leave the key to its lease.
    let called = tokio::spawn(inner.oneshot(request)).await;
    let response = match called {
        Ok(Ok(response)) => response.into_response(),
        Ok(Err(error)) => {
            claim.end(None).await;
            return Err(error);
        }
        Err(_) => {
            claim.end(None).await;
            return Ok(handler_failed().into_response());
        }
    };
    if Fate::of(response.status()) == Fate::Forget {
        claim.end(None).await;
        return Ok(response);
    }
    let (response, kept) = keep(response, claim.settings.response_bytes_max).await;
    claim.end(Some(kept.encode())).await;
    Ok(response)
}

/// What is kept of a response: of one that is too long, or streamed, the status and the headers.
async fn keep(response: Response, bytes_max: usize) -> (Response, Kept) {
    let (mut parts, body) = response.into_parts();
    let is_short = body.size_hint().exact().is_some_and(|bytes| bytes <= bytes_max as u64);
    if !is_short {
        let mut headers = parts.headers.clone();
        headers.remove(http::header::CONTENT_LENGTH);
        let kept = Kept::new(parts.status, &headers, Bytes::new(), None);
        return (Response::from_parts(parts, body), kept);
    }
    // A body of a known length that ends early is kept as far as it came: its effect took place.
    let (body, is_whole) = read_as_far_as_it_comes(body, bytes_max).await;
    if !is_whole {
        parts.headers.remove(http::header::CONTENT_LENGTH);
    }
    let kept = Kept::new(parts.status, &parts.headers, body.clone(), None);
    (Response::from_parts(parts, Body::from(body)), kept)
}

impl<S: IdempotencyKeys> Clone for ClaimFirst<S> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings) }
    }
}

impl<S: IdempotencyKeys, T: Clone> Clone for ClaimFirstService<S, T> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings), inner: self.inner.clone() }
    }
}

impl<S: IdempotencyKeys> fmt::Debug for ClaimFirst<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimFirst").finish_non_exhaustive()
    }
}

impl<S: IdempotencyKeys, T: fmt::Debug> fmt::Debug for ClaimFirstService<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimFirstService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
