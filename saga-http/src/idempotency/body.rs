//! A handler in the transaction of its request.

use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use http::StatusCode;
use saga_core::env::BoxFuture;
use saga_core::store::{IdempotencyKeys, KeyVerdict, KeyedBody};

use super::accepted::AcceptedSaga;
use super::answer::SOON;
use super::arguments::Arguments;
use super::handler::TxHandler;
use super::incoming::Incoming;
use super::kept::{Fate, Kept};
use super::settings::Settings;
use super::transaction::{AfterCommit, Tx};
use crate::Problem;

/// What the last run of a handler left.
#[derive(Default)]
pub(super) struct Left {
    pub(super) response: Option<Response>,
    /// The response does not depend on the store's answer: nothing is kept.
    pub(super) is_final: bool,
    /// Whether the writes are kept if the transaction commits.
    pub(super) keeps_writes: bool,
}

/// What a body and its caller share.
#[derive(Clone, Default)]
pub(super) struct Slot {
    left: Arc<Mutex<Left>>,
    after_commit: AfterCommit,
}

impl Slot {
    pub(super) fn take(&self) -> Left {
        std::mem::take(&mut *self.lock())
    }

    /// Tells the runtime of what is committed.
    pub(super) fn committed(&self) {
        let all = std::mem::take(&mut *self.after_commit.lock().unwrap_or_else(PoisonError::into_inner));
        for tell in all {
            tell();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A store may run the transaction again: what an earlier run left does not count.
    fn clear(&self) {
        *self.lock() = Left::default();
        self.after_commit.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A handler with its request.
pub(super) struct HandlerBody<S: IdempotencyKeys, F, Args, St, M> {
    pub(super) settings: Arc<Settings<S>>,
    pub(super) handler: F,
    /// What was extracted for the first run.
    pub(super) arguments: Option<Args>,
    pub(super) incoming: Arc<Incoming>,
    pub(super) state: St,
    pub(super) slot: Slot,
    pub(super) marker: PhantomData<fn() -> M>,
}

impl<S, F, Args, St, M> KeyedBody<S::Conn> for HandlerBody<S, F, Args, St, M>
where
    S: IdempotencyKeys,
    F: for<'a> TxHandler<'a, S, Args>,
    Args: Arguments<St, M>,
    St: Send + Sync,
{
    fn run<'a>(&'a mut self, conn: &'a mut S::Conn) -> BoxFuture<'a, KeyVerdict> {
        Box::pin(async move {
            self.slot.clear();
            let slot = self.slot.clone();
            let limit = self.settings.time_max;
            let running = tokio::time::timeout(limit, AssertUnwindSafe(self.respond(conn)).catch_unwind());
            let (response, verdict) = match running.await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => (panicked().into_response(), KeyVerdict::Abandon),
                Err(_) => (too_slow().into_response(), KeyVerdict::Abandon),
            };
            let is_final = matches!(verdict, KeyVerdict::Abandon | KeyVerdict::RollBack);
            let keeps_writes = matches!(verdict, KeyVerdict::Keep(_));
            *slot.lock() = Left { response: Some(response), is_final, keeps_writes };
            verdict
        })
    }
}

impl<S, F, Args, St, M> HandlerBody<S, F, Args, St, M>
where
    S: IdempotencyKeys,
    F: for<'a> TxHandler<'a, S, Args>,
    Args: Arguments<St, M>,
    St: Send + Sync,
{
    async fn respond(&mut self, conn: &mut S::Conn) -> (Response, KeyVerdict) {
        let arguments = match self.arguments.take() {
            Some(arguments) => arguments,
            None => match Args::extract(self.incoming.request(), &self.state).await {
                Ok(arguments) => arguments,
                Err(rejection) => return (rejection, KeyVerdict::RollBack),
            },
        };
        let settings = &self.settings;
        let runtime = settings.runtime.as_ref().map(|runtime| runtime.tenant(self.incoming.tenant.clone()));
        let tx = Tx::new(conn, runtime, Arc::clone(&settings.sagas_at), Arc::clone(&self.slot.after_commit));
        let response = self.handler.call(tx, arguments).await;
        if self.incoming.keyed.is_some() {
            return judge(response, settings.response_bytes_max).await;
        }
        let is_kept = Fate::of(response.status()) == Fate::Keep;
        (response, if is_kept { KeyVerdict::Keep(Vec::new()) } else { KeyVerdict::RollBack })
    }
}

/// What is kept of a response, which is returned whole.
async fn judge(response: Response, bytes_max: usize) -> (Response, KeyVerdict) {
    let fate = Fate::of(response.status());
    if fate == Fate::Forget {
        return (response, KeyVerdict::RollBack);
    }
    let (parts, body) = response.into_parts();
    let is_short = body.size_hint().exact().is_some_and(|bytes| bytes <= bytes_max as u64);
    let body = if is_short { to_bytes(body, bytes_max).await.ok() } else { None };
    let Some(body) = body else {
        return (too_long(bytes_max).into_response(), KeyVerdict::RollBack);
    };
    let saga = parts.extensions.get::<AcceptedSaga>().map(|saga| saga.0.clone());
    let kept = Kept::new(parts.status, &parts.headers, body.clone(), saga).encode();
    let verdict = if fate == Fate::Keep { KeyVerdict::Keep(kept) } else { KeyVerdict::RollBackAndKeep(kept) };
    (Response::from_parts(parts, Body::from(body)), verdict)
}

fn too_long(bytes_max: usize) -> Problem {
    tracing::error!(
        bytes_max,
        "a response cannot be kept under its key: it is too long, or streamed; answer with a `Location` to read it from"
    );
    let detail =
        format!("the response is longer than {bytes_max} bytes, or streamed, and cannot be kept; nothing was done");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
}

fn panicked() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed while it handled the request; nothing was done")
}

fn too_slow() -> Problem {
    let detail = "the request took too long; nothing was done, so send it again with the same key";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(SOON)
}
