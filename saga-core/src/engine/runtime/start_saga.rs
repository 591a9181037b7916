//! A start that is being described: what it waits for before it is made.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::handle::SagaHandle;
use super::runtime::Runtime;
use crate::engine::context::StartError;
use crate::engine::decide::StartTiming;
use crate::engine::start::{begins_in, check_same};
use crate::key::Key;
use crate::saga::{Definition, LONGEST};
use crate::store::{StartIn, Started, Store};

/// A start of a saga, which [`Runtime::start`] returns. Nothing happens until it is awaited.
///
/// # Errors
/// Those of [`Runtime::start`].
///
/// # Cancel safety
/// When the awaited future is dropped, the saga was started or not; start it again with the same key to be sure.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use saga_core::engine::CompensationCause;
/// use saga_core::memory::MemoryStore;
/// use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
///
/// #[saga_step]
/// async fn remind(_customer: String) -> Result<(), StepError> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let reminder = Saga::named("reminder").input::<String>().step::<remind>().build()?;
/// let store = MemoryStore::new();
/// let runtime = Runtime::builder(store.clone()).saga(&reminder).start().await?;
///
/// let (soon, in_a_week) = (Duration::from_millis(20), Duration::from_hours(7 * 24));
/// let first = runtime.start(&reminder, "reminder-1", "Ada".to_owned()).after(soon).await?;
/// let second = runtime.start(&reminder, "reminder-2", "Ada".to_owned()).after(in_a_week).await?;
/// assert!(matches!(first.outcome().await?, Outcome::Completed { .. }));
/// runtime.cancel("reminder-2", "she has paid").await?;
/// let outcome = second.outcome().await?;
/// assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }));
///
/// // In the transaction of the application: the saga exists if and only if that commits.
/// let mut transaction = store.transaction();
/// transaction.conn().put("invoice 3", "sent")?;
/// let third = runtime.start(&reminder, "reminder-3", "Ada".to_owned()).in_tx(transaction.conn()).await?;
/// transaction.commit()?;
/// third.committed();
/// runtime.attach("reminder-3").await?.outcome().await?;
/// # runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "the saga is started when this is awaited"]
pub struct StartSaga<'a, S: Store> {
    runtime: &'a Runtime<S>,
    definition: &'a Arc<Definition<S>>,
    /// The key, and the encoded input.
    request: Result<(Key, Vec<u8>), StartError>,
    timing: StartTiming,
}

impl<'a, S: Store> StartSaga<'a, S> {
    pub(crate) fn new(
        runtime: &'a Runtime<S>,
        definition: &'a Arc<Definition<S>>,
        request: Result<(Key, Vec<u8>), StartError>,
    ) -> Self {
        Self { runtime, definition, request, timing: StartTiming::default() }
    }

    /// The saga begins after this time at the earliest, by the store's clock. It is durable from the start on, and any
    /// runtime on the store begins it. Until then [`Runtime::cancel`] ends it without calling a step, even if its first
    /// step is the pivot.
    ///
    /// Of two starts of one key, the first one says when the saga begins.
    pub fn after(mut self, delay: Duration) -> Self {
        self.timing.delay = delay.min(LONGEST);
        self
    }

    /// The saga has this time to reach its pivot, counted from when it begins, instead of the
    /// [`deadline`](crate::saga::SagaBuilder::deadline) of its definition. A saga that was started before keeps the
    /// deadline that it has.
    pub fn within(mut self, limit: Duration) -> Self {
        self.timing.within = Some(limit);
        self
    }

    /// Starts the saga in the caller's transaction: it exists if and only if that commits.
    pub fn in_tx(self, conn: &'a mut S::Conn) -> StartSagaInTx<'a, S>
    where
        S: StartIn,
    {
        StartSagaInTx { start: self, conn }
    }
}

impl<'a, S: Store> IntoFuture for StartSaga<'a, S> {
    type Output = Result<SagaHandle<S>, StartError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { runtime, definition, request, timing } = self;
            let (key, input) = request?;
            let engine = &runtime.engine;
            let started = engine.starter.start_saga(definition, &runtime.tenant, key, input, timing).await?;
            Ok(SagaHandle::of_start(engine, started))
        })
    }
}

impl<S: Store> fmt::Debug for StartSaga<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartSaga")
            .field("saga", &self.definition.id)
            .field("key", &self.request.as_ref().map(|(key, _)| key))
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

/// A start in the caller's transaction, which [`StartSaga::in_tx`] returns. Nothing happens until it is awaited. Call
/// [`UncommittedStart::committed`] after the commit; without it the runtime finds the saga at its next poll.
///
/// # Errors
/// Those of [`Runtime::start`], and when the connection is not in a transaction.
///
/// # Cancel safety
/// When the awaited future is dropped, roll the transaction back.
#[must_use = "the saga is started when this is awaited"]
pub struct StartSagaInTx<'a, S: Store> {
    start: StartSaga<'a, S>,
    conn: &'a mut S::Conn,
}

impl<'a, S: StartIn> IntoFuture for StartSagaInTx<'a, S> {
    type Output = Result<UncommittedStart<S>, StartError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { start: StartSaga { runtime, definition, request, timing }, conn } = self;
            let (key, input) = request?;
            let engine = &runtime.engine;
            let new = engine.starter.new_saga(definition, &runtime.tenant, key.clone(), input, timing)?;
            let (input, hash) = (new.input.clone(), new.input_hash.clone());
            let begins_in = begins_in(&new);
            let already_started = match engine.ctx.store.start_in(conn, new).await? {
                Started::New => false,
                Started::AlreadyExists(row) => {
                    engine.statistics.count_start(false);
                    check_same(definition, &key, &input, &hash, &row)?;
                    true
                }
            };
            Ok(UncommittedStart { engine: Arc::clone(engine), already_started, begins_in })
        })
    }
}

impl<S: Store> fmt::Debug for StartSagaInTx<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartSagaInTx").field("start", &self.start).finish_non_exhaustive()
    }
}

/// A saga that was started inside the caller's transaction.
pub struct UncommittedStart<S: Store> {
    engine: Arc<Engine<S>>,
    already_started: bool,
    begins_in: Duration,
}

impl<S: Store> UncommittedStart<S> {
    /// Whether the key was known before this start.
    pub fn already_started(&self) -> bool {
        self.already_started
    }

    /// Says that the transaction was committed, so that the saga begins at once, or when its delay has passed. A new saga
    /// is counted in [`Statistics::started`](crate::engine::Statistics::started) here, since only the caller knows that it
    /// exists.
    pub fn committed(self) {
        if !self.already_started {
            self.engine.statistics.count_start(true);
        }
        self.engine.committer.scheduler.announce_unclaimed(self.begins_in);
    }
}

impl<S: Store> fmt::Debug for UncommittedStart<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UncommittedStart").field("already_started", &self.already_started).finish_non_exhaustive()
    }
}
