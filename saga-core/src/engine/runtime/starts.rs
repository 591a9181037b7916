//! Starting sagas.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::handle::SagaHandle;
use super::runtime::Runtime;
use crate::engine::context::StartError;
use crate::engine::decide::StartTiming;
use crate::engine::start::{StartedSaga, check_same};
use crate::key::Key;
use crate::saga::{LONGEST, Saga};
use crate::step::{Payload, codec};
use crate::store::{StartIn, Started, Store};

impl<S: Store> Runtime<S> {
    /// Starts a saga. When it returns, the saga is durable. The same key with the same input gives the same saga, however
    /// often and from wherever it is started (G6).
    ///
    /// # Errors
    /// When the key or the input is refused, the key belongs to another saga or was used with another input, or the store
    /// fails. Nothing was changed then, or the same call may be repeated.
    ///
    /// # Cancel safety
    /// When dropped, the saga was started or not; start it again with the same key to be sure.
    pub async fn start<I: Payload>(
        &self,
        saga: &Saga<S, I>,
        key: impl AsRef<str>,
        input: I,
    ) -> Result<SagaHandle<S>, StartError> {
        let key = Key::new(key)?;
        let input = codec::<I>().encode(&input).map_err(|error| StartError::Input(error.to_string()))?;
        let started =
            self.engine.starter.start_saga(saga.definition(), &self.tenant, key, input, StartTiming::default()).await?;
        Ok(self.running_of(started))
    }

    /// Starts a saga that begins after that time at the earliest, by the store's clock. When it returns, the saga is
    /// durable, with the guarantees of [`Runtime::start`] (G6): the same key is the same saga, and the first start of it
    /// says when it begins. Whatever runtime works on the store then begins it. Until then
    /// [`Runtime::cancel`] ends it without anything being called, also where its first step is the pivot.
    ///
    /// # Errors
    /// Those of [`Runtime::start`].
    ///
    /// # Cancel safety
    /// That of [`Runtime::start`].
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
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
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&reminder).start().await?;
    ///
    /// let (soon, in_a_week) = (Duration::from_millis(20), Duration::from_hours(7 * 24));
    /// let first = runtime.start_after(&reminder, "reminder-1", "Ada".to_owned(), soon).await?;
    /// let second = runtime.start_after(&reminder, "reminder-2", "Ada".to_owned(), in_a_week).await?;
    ///
    /// assert!(matches!(first.outcome().await?, Outcome::Completed { .. }));
    /// runtime.cancel("reminder-2", "she has paid").await?;
    /// assert!(matches!(second.outcome().await?, Outcome::Compensated { cancelled: true, .. }));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_after<I: Payload>(
        &self,
        saga: &Saga<S, I>,
        key: impl AsRef<str>,
        input: I,
        delay: Duration,
    ) -> Result<SagaHandle<S>, StartError> {
        let key = Key::new(key)?;
        let input = codec::<I>().encode(&input).map_err(|error| StartError::Input(error.to_string()))?;
        let when = StartTiming { delay: delay.min(LONGEST), within: None };
        Ok(self.running_of(self.engine.starter.start_saga(saga.definition(), &self.tenant, key, input, when).await?))
    }

    /// Starts a saga that has so much time until its pivot, whatever its definition says: see
    /// [`SagaBuilder::deadline`](crate::saga::SagaBuilder::deadline). In all else it does what [`Runtime::start`] does. A
    /// saga that is there already keeps the deadline that it has.
    ///
    /// # Errors
    /// Those of [`Runtime::start`].
    ///
    /// # Cancel safety
    /// That of [`Runtime::start`].
    pub async fn start_within<I: Payload>(
        &self,
        saga: &Saga<S, I>,
        key: impl AsRef<str>,
        input: I,
        within: Duration,
    ) -> Result<SagaHandle<S>, StartError> {
        let key = Key::new(key)?;
        let input = codec::<I>().encode(&input).map_err(|error| StartError::Input(error.to_string()))?;
        let when = StartTiming { within: Some(within), ..StartTiming::default() };
        Ok(self.running_of(self.engine.starter.start_saga(saga.definition(), &self.tenant, key, input, when).await?))
    }

    /// Starts many sagas of one definition: one commit carries up to 1,000 of them, more of them go in several, in their
    /// order. There is one answer for each, in the order of the requests, with the guarantees of [`Runtime::start`]: when
    /// it returned, those that were started are durable, and for the others the same call may be repeated (G6). One that
    /// is refused does not hinder the others.
    ///
    /// # Errors
    /// Each answer has those of [`Runtime::start`]. A failure of the store is told to all that engine the commit.
    ///
    /// # Cancel safety
    /// When dropped, each saga was started or not; start them again with the same keys to be sure.
    ///
    /// # Examples
    /// ```
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Runtime, Saga, StartError, StepError, saga_step};
    ///
    /// #[saga_step]
    /// async fn greet(name: String) -> Result<String, StepError> {
    ///     Ok(format!("hello {name}"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let greeting = Saga::named("greeting").input::<String>().step::<greet>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&greeting).start().await?;
    ///
    /// let guests = [("guest-1", "Ada"), ("guest-2", "Grace"), ("guest-1", "Alan")];
    /// let started = runtime.start_many(&greeting, guests.map(|(key, name)| (key, name.to_owned()))).await;
    ///
    /// assert!(started[0].is_ok() && started[1].is_ok());
    /// assert!(matches!(started[2], Err(StartError::PayloadMismatch { .. })));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_many<I: Payload, K: AsRef<str>>(
        &self,
        saga: &Saga<S, I>,
        sagas: impl IntoIterator<Item = (K, I)>,
    ) -> Vec<Result<SagaHandle<S>, StartError>> {
        let encode = |(key, input): (K, I)| {
            let key = Key::new(key)?;
            let input = codec::<I>().encode(&input).map_err(|error| StartError::Input(error.to_string()))?;
            Ok((key, input))
        };
        let asked = sagas.into_iter().map(encode).collect();
        let started = self.engine.starter.start_sagas(saga.definition(), &self.tenant, asked).await;
        started.into_iter().map(|started| Ok(self.running_of(started?))).collect()
    }

    /// Starts a saga inside the caller's own transaction: it exists if and only if that commits. Call
    /// [`UncommittedStart::committed`] after the commit; without it the runtime finds the saga at its next poll.
    ///
    /// # Errors
    /// Those of [`Runtime::start`], and when the connection is not in a transaction.
    ///
    /// # Cancel safety
    /// When dropped, roll the transaction back.
    pub async fn start_in_tx<I: Payload>(
        &self,
        conn: &mut S::Conn,
        saga: &Saga<S, I>,
        key: impl AsRef<str>,
        input: I,
    ) -> Result<UncommittedStart<S>, StartError>
    where
        S: StartIn,
    {
        let key = Key::new(key)?;
        let input = codec::<I>().encode(&input).map_err(|error| StartError::Input(error.to_string()))?;
        let new = self.engine.starter.new_saga(
            saga.definition(),
            &self.tenant,
            key.clone(),
            input,
            StartTiming::default(),
        )?;
        let (input, hash) = (new.input.clone(), new.input_hash.clone());
        match self.engine.ctx.store.start_in(conn, new).await? {
            Started::New => Ok(UncommittedStart { engine: Arc::clone(&self.engine), already_started: false }),
            Started::AlreadyExists(row) => {
                check_same(saga.definition(), &key, &input, &hash, &row)?;
                Ok(UncommittedStart { engine: Arc::clone(&self.engine), already_started: true })
            }
        }
    }

    fn running_of(&self, started: StartedSaga) -> SagaHandle<S> {
        if let Some(row) = &started.known {
            self.engine.outcomes.tell_of(row);
        }
        SagaHandle::new(&self.engine, started.slot, started.id, started.key, started.known.is_some())
    }
}

/// A saga that was started inside the caller's transaction.
pub struct UncommittedStart<S: Store> {
    engine: Arc<Engine<S>>,
    already_started: bool,
}

impl<S: Store> UncommittedStart<S> {
    /// Whether the key was known before this start.
    pub fn already_started(&self) -> bool {
        self.already_started
    }

    /// Says that the transaction was committed, so that the saga begins at once.
    pub fn committed(self) {
        self.engine.committer.scheduler.announce_unclaimed(Duration::ZERO);
    }
}

impl<S: Store> fmt::Debug for UncommittedStart<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UncommittedStart").field("already_started", &self.already_started).finish_non_exhaustive()
    }
}
