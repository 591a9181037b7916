//! Starting sagas.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::deadline::When;
use super::error::StartError;
use super::running::Running;
use super::runtime::Runtime;
use super::shared::Shared;
use super::start::{StartedSaga, check_same};
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
    ) -> Result<Running<S>, StartError> {
        let key = Key::new(key)?;
        let input = codec::<I>().encode(&input).map_err(|error| StartError::Input(error.to_string()))?;
        let started = self.shared.start_saga(saga.definition(), &self.tenant, key, input, When::default()).await?;
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
    ) -> Result<Running<S>, StartError> {
        let key = Key::new(key)?;
        let input = codec::<I>().encode(&input).map_err(|error| StartError::Input(error.to_string()))?;
        let when = When { delay: delay.min(LONGEST), within: None };
        Ok(self.running_of(self.shared.start_saga(saga.definition(), &self.tenant, key, input, when).await?))
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
    ) -> Result<Running<S>, StartError> {
        let key = Key::new(key)?;
        let input = codec::<I>().encode(&input).map_err(|error| StartError::Input(error.to_string()))?;
        let when = When { within: Some(within), ..When::default() };
        Ok(self.running_of(self.shared.start_saga(saga.definition(), &self.tenant, key, input, when).await?))
    }

    /// Starts many sagas of one definition: one commit carries up to 1,000 of them, more of them go in several, in their
    /// order. There is one answer for each, in the order of the requests, with the guarantees of [`Runtime::start`]: when
    /// it returned, those that were started are durable, and for the others the same call may be repeated (G6). One that
    /// is refused does not hinder the others.
    ///
    /// # Errors
    /// Each answer has those of [`Runtime::start`]. A failure of the store is told to all that shared the commit.
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
    /// assert!(matches!(started[2], Err(StartError::OtherPayload { .. })));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_many<I: Payload, K: AsRef<str>>(
        &self,
        saga: &Saga<S, I>,
        sagas: impl IntoIterator<Item = (K, I)>,
    ) -> Vec<Result<Running<S>, StartError>> {
        let encode = |(key, input): (K, I)| {
            let key = Key::new(key)?;
            let input = codec::<I>().encode(&input).map_err(|error| StartError::Input(error.to_string()))?;
            Ok((key, input))
        };
        let asked = sagas.into_iter().map(encode).collect();
        let started = self.shared.start_sagas(saga.definition(), &self.tenant, asked).await;
        started.into_iter().map(|started| Ok(self.running_of(started?))).collect()
    }

    /// Starts a saga inside the caller's own transaction: it exists if and only if that commits. Call
    /// [`StartedIn::committed`] after the commit; without it the runtime finds the saga at its next poll.
    ///
    /// # Errors
    /// Those of [`Runtime::start`], and when the connection is not in a transaction.
    ///
    /// # Cancel safety
    /// When dropped, roll the transaction back.
    pub async fn start_in<I: Payload>(
        &self,
        conn: &mut S::Conn,
        saga: &Saga<S, I>,
        key: impl AsRef<str>,
        input: I,
    ) -> Result<StartedIn<S>, StartError>
    where
        S: StartIn,
    {
        let key = Key::new(key)?;
        let input = codec::<I>().encode(&input).map_err(|error| StartError::Input(error.to_string()))?;
        let new = self.shared.new_saga(saga.definition(), &self.tenant, key.clone(), input, When::default())?;
        let (input, hash) = (new.input.clone(), new.input_hash.clone());
        match self.shared.store.start_in(conn, new).await? {
            Started::New => Ok(StartedIn { shared: Arc::clone(&self.shared), already_known: false }),
            Started::Known(row) => {
                check_same(saga.definition(), &key, &input, &hash, &row)?;
                Ok(StartedIn { shared: Arc::clone(&self.shared), already_known: true })
            }
        }
    }

    fn running_of(&self, started: StartedSaga) -> Running<S> {
        if let Some(row) = &started.known {
            self.shared.tell_of(row);
        }
        Running::new(&self.shared, started.slot, started.id, started.key, started.known.is_some())
    }
}

/// A saga that was started inside the caller's transaction.
pub struct StartedIn<S: Store> {
    shared: Arc<Shared<S>>,
    already_known: bool,
}

impl<S: Store> StartedIn<S> {
    /// Whether the key was known before this start.
    pub fn already_known(&self) -> bool {
        self.already_known
    }

    /// Says that the transaction was committed, so that the saga begins at once.
    pub fn committed(self) {
        self.shared.leave_work(Duration::ZERO);
    }
}
impl<S: Store> fmt::Debug for StartedIn<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartedIn").field("already_known", &self.already_known).finish_non_exhaustive()
    }
}
