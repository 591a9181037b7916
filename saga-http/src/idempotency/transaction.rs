//! The transaction that a handler is given.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;
use saga_core::engine::PublishError;
use saga_core::step::Payload;
use saga_core::store::IdempotencyKeys;
use saga_core::{Event, Runtime, Saga, StartError};

use super::accepted::SagaAccepted;
use super::answer::unavailable;
use super::soon::SOON;
use crate::Problem;

/// What is told to the runtime once the transaction is committed.
pub(super) type AfterCommit = Arc<Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

/// The transaction of a request: what the handler writes in it, the key and the response are one commit.
///
/// A handler of an [`Idempotency`](super::Idempotency) takes it as its first argument, by value. The transaction commits
/// when the response has a status of 2xx or 3xx, and is undone otherwise. The handler neither commits nor rolls back
/// itself.
///
/// # Cancel safety
/// The handler runs in a task of its own. A client that goes away neither aborts it nor loses the response.
pub struct Tx<'a, S: IdempotencyKeys> {
    conn: &'a mut S::Conn,
    runtime: Option<Runtime<S>>,
    sagas_at: Arc<str>,
    after_commit: AfterCommit,
}

impl<'a, S: IdempotencyKeys> Tx<'a, S> {
    pub(super) fn new(
        conn: &'a mut S::Conn,
        runtime: Option<Runtime<S>>,
        sagas_at: Arc<str>,
        after_commit: AfterCommit,
    ) -> Self {
        Self { conn, runtime, sagas_at, after_commit }
    }

    /// The store's connection, inside the transaction.
    pub fn conn(&mut self) -> &mut S::Conn {
        self.conn
    }

    /// Starts a saga in the transaction, and answers 202 with its `Location`: it exists if and only if the transaction
    /// commits. The same key with the same input gives the same saga (G6).
    ///
    /// # Errors
    /// A problem: 422 where the key belongs to another saga or to another input, or is none; 503 where the store fails or
    /// the runtime shuts down; 500 where the saga is not registered, or the layer was built on a store without a runtime.
    ///
    /// # Cancel safety
    /// When it is dropped, the transaction must not be kept: return an error.
    pub async fn start<I: Payload, R>(
        &mut self,
        saga: &Saga<S, I, R>,
        key: impl AsRef<str> + Send,
        input: I,
    ) -> Result<SagaAccepted, Problem> {
        let key = key.as_ref().to_owned();
        let runtime = self.runtime.clone().ok_or_else(without_runtime)?;
        let started = runtime.start(saga, &key, input).in_tx(self.conn).await?;
        self.then(move || started.committed());
        Ok(SagaAccepted::new(&key, &self.sagas_at))
    }

    /// Publishes an event in the transaction: it is sent if and only if the transaction commits, in the order of the
    /// commits of its topic and key (G9).
    ///
    /// # Errors
    /// A problem: 503 where the store fails; 500 where the topic, the key or the event is refused, or the layer was built
    /// on a store without a runtime.
    ///
    /// # Cancel safety
    /// That of [`start`](Self::start).
    pub async fn publish<E: Event>(
        &mut self,
        topic: &str,
        key: impl AsRef<str> + Send,
        event: &E,
    ) -> Result<(), Problem> {
        let runtime = self.runtime.clone().ok_or_else(without_runtime)?;
        let published = runtime.publish(key, event).topic(topic).in_tx(self.conn).await?;
        self.then(move || published.committed());
        Ok(())
    }

    fn then(&self, tell: impl FnOnce() + Send + 'static) {
        self.after_commit.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(tell));
    }
}

fn without_runtime() -> Problem {
    tracing::error!(
        "a handler needs a runtime, and its `Idempotency` was made by `of_store`; make it by `new(&runtime)`"
    );
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the server is not set up to start sagas or to publish events here")
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Key(_)
            | StartError::PayloadMismatch { .. }
            | StartError::OtherSaga { .. }
            | StartError::Input(_)
            | StartError::TooLarge { .. } => Self::new(StatusCode::UNPROCESSABLE_ENTITY, error),
            StartError::Store(error) => unavailable(&error),
            StartError::ShuttingDown => Self::new(StatusCode::SERVICE_UNAVAILABLE, error).retry_after(SOON),
            error => {
                tracing::error!(%error, "a handler could not start a saga");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the server could not start the saga")
            }
        }
    }
}

impl From<PublishError> for Problem {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Store(error) => unavailable(&error),
            error => {
                tracing::error!(%error, "a handler could not publish an event");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the server could not publish an event")
            }
        }
    }
}

impl<S: IdempotencyKeys> fmt::Debug for Tx<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("runtime", &self.runtime).finish_non_exhaustive()
    }
}
