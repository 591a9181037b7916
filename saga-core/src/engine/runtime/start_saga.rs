//! A start that is being described: what it waits for before it is made.

use std::fmt;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::engine::Engine;
use super::handle::SagaHandle;
use super::runtime::Runtime;
use crate::engine::context::StartError;
use crate::engine::decide::StartOptions;
use crate::engine::message::request_hash;
use crate::engine::start::{begins_in, check_same};
use crate::env::{Activity, during};
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
pub struct StartSaga<'a, S: Store, R = ()> {
    runtime: &'a Runtime<S>,
    definition: &'a Arc<Definition<S>>,
    /// The key, and the encoded input.
    request: Result<(Key, Vec<u8>), StartError>,
    options: StartOptions,
    returned: PhantomData<fn() -> R>,
}

impl<'a, S: Store, R> StartSaga<'a, S, R> {
    pub(crate) fn new(
        runtime: &'a Runtime<S>,
        definition: &'a Arc<Definition<S>>,
        request: Result<(Key, Vec<u8>), StartError>,
    ) -> Self {
        Self { runtime, definition, request, options: StartOptions::default(), returned: PhantomData }
    }

    /// The saga begins after this time at the earliest, by the store's clock. It is durable from the start on, and any
    /// runtime on the store begins it. Until then [`Runtime::cancel`] ends it without calling a step, even if its first
    /// step is the pivot.
    ///
    /// Of two starts of one key, the first one says when the saga begins.
    pub fn after(mut self, delay: Duration) -> Self {
        self.options.timing.delay = delay.min(LONGEST);
        self
    }

    /// The saga has this time to reach its pivot, counted from when it begins, instead of the
    /// [`deadline`](crate::saga::SagaBuilder::deadline) of its definition. A saga that was started before keeps the
    /// deadline that it has.
    pub fn within(mut self, limit: Duration) -> Self {
        self.options.timing.within = Some(limit);
        self
    }

    /// Tells a repeated request from another one by this value instead of by the whole input.
    ///
    /// Without it, a start is a repetition if its input is equal to that of the first start. An input with an id or a time that
    /// the server makes for each request is never equal, so each retry of a client would be refused as
    /// [`PayloadMismatch`](StartError::PayloadMismatch). Pass what the client sent: the order without the generated parts. The
    /// first start's input stays.
    ///
    /// ```
    /// # use saga_core::memory::MemoryStore;
    /// # use saga_core::{Runtime, Saga, StartError, StepError, saga_step};
    /// # #[saga_step(no_compensation)]
    /// # async fn place(_order: (String, u64)) -> Result<(), StepError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let saga = Saga::named("order").input::<(String, u64)>().step::<place>().build()?;
    /// # let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await?;
    /// // The second number is made by the server.
    /// let first = runtime.start(&saga, "order-1", ("tea".to_owned(), 17)).fingerprint(&"tea").await?;
    /// let again = runtime.start(&saga, "order-1", ("tea".to_owned(), 18)).fingerprint(&"tea").await?;
    /// assert_eq!(first.id(), again.id());
    ///
    /// let other = runtime.start(&saga, "order-1", ("coffee".to_owned(), 19)).fingerprint(&"coffee").await;
    /// assert!(matches!(other, Err(StartError::PayloadMismatch { .. })));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn fingerprint<F: Serialize + ?Sized>(mut self, value: &F) -> Self {
        match serde_json::to_vec(value) {
            Ok(encoded) => self.options.fingerprint = Some(request_hash(&encoded)),
            Err(error) => self.request = Err(StartError::Input(format!("its fingerprint: {error}"))),
        }
        self
    }

    /// Passes on the trace context of the caller, a `traceparent` header of
    /// [W3C Trace Context](https://www.w3.org/TR/trace-context/#traceparent-header). It is stored with the saga: each step reads it
    /// with [`StepContext::traceparent`](crate::StepContext::traceparent), and the messages of the saga carry it. A text that is no
    /// `traceparent` is left out, as the standard asks for.
    pub fn traceparent(mut self, traceparent: impl AsRef<str>) -> Self {
        self.options.traceparent = Some(traceparent.as_ref()).filter(|text| is_traceparent(text)).map(str::to_owned);
        self
    }

    /// Starts the saga in the caller's transaction: it exists if and only if that commits. Call
    /// [`UncommittedStart::committed`] after the commit; without it the runtime finds the saga at its next poll.
    ///
    /// # Errors
    /// Those of [`Runtime::start`], and when the connection is not in a transaction.
    ///
    /// # Cancel safety
    /// When dropped, roll the transaction back.
    pub async fn in_tx(self, conn: &mut S::Conn) -> Result<UncommittedStart<S>, StartError>
    where
        S: StartIn,
    {
        let Self { runtime, definition, request, options, .. } = self;
        let (key, input) = request?;
        let engine = &runtime.engine;
        let new = engine.starter.new_saga(definition, &runtime.tenant, key.clone(), input, options)?;
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
    }
}

impl<'a, S: Store, R: 'a> IntoFuture for StartSaga<'a, S, R> {
    type Output = Result<SagaHandle<S, R>, StartError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { runtime, definition, request, options, .. } = self;
            let (key, input) = request?;
            let engine = &runtime.engine;
            let starting = pin!(engine.starter.start_saga(definition, &runtime.tenant, key, input, options));
            let started = during(&*engine.ctx.env, Activity::Waiting, starting).await?;
            Ok(SagaHandle::of_start(engine, started))
        })
    }
}

impl<S: Store, R> fmt::Debug for StartSaga<'_, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartSaga")
            .field("saga", &self.definition.id)
            .field("key", &self.request.as_ref().map(|(key, _)| key))
            .field("timing", &self.options.timing)
            .finish_non_exhaustive()
    }
}

/// Whether it is `version-traceid-parentid-flags` in lower-case hexadecimal digits.
fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_set = |part: &str| part.bytes().any(|digit| digit != b'0');
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, parent, flags] = parts[..] else { return false };
    is_hex(version, 2)
        && version != "ff"
        && (is_hex(trace, 32) && is_set(trace))
        && (is_hex(parent, 16) && is_set(parent))
        && is_hex(flags, 2)
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

#[cfg(test)]
mod tests {
    use super::is_traceparent;

    #[test]
    fn only_a_whole_trace_context_is_one() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(is_traceparent(good));
        let zero = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
        let bad = ["", "00", &good[1..], &good.to_uppercase(), &good.replace("00-", "ff-"), zero, &format!("{good}-x")];
        for text in bad {
            assert!(!is_traceparent(text), "{text}");
        }
    }
}
