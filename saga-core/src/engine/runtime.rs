use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::builder::RuntimeBuilder;
use super::cancel::Cancellation;
use super::dead_letters::DeadLetterDesk;
use super::deadline::When;
use super::error::{RuntimeError, StartError};
use super::guard::outside_step;
use super::inspect::Inspector;
use super::operator::Operator;
use super::outgoing::OutboxDesk;
use super::publish::{PublishError, PublishedIn};
use super::running::Running;
use super::saga_desk::SagaDesk;
use super::shared::Shared;
use super::signal::Receipt;
use super::start::{StartedSaga, check_same};
use super::statistics::Statistics;
use super::status::{SagaStatus, SagaSummary};
use super::trouble::Health;
use crate::key::{Key, Tenant};
use crate::saga::Saga;
use crate::step::{Event, Payload, Signal, codec};
use crate::store::{MessageId, SagaFilter, StartIn, Started, Status, Store};
use crate::transport::Incoming;

/// A runtime: it starts sagas and brings them to their end. Cheap to clone; it stops when the last clone is dropped,
/// and what it had not finished goes on when a runtime runs again.
pub struct Runtime<S: Store> {
    pub(super) shared: Arc<Shared<S>>,
    pub(super) tenant: Tenant,
    /// Shared by all clones: the last one stops the tasks.
    running: Arc<StopWhenDropped<S>>,
}

struct StopWhenDropped<S: Store>(Arc<Shared<S>>);

impl<S: Store> Drop for StopWhenDropped<S> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl<S: Store> Runtime<S> {
    /// Begins a runtime on this store.
    pub fn builder(store: impl Into<Arc<S>>) -> RuntimeBuilder<S> {
        RuntimeBuilder::new(store.into())
    }

    pub(super) fn run(shared: Arc<Shared<S>>, incoming: Vec<Option<Box<dyn Incoming>>>) -> Self {
        shared.spawn_all(incoming);
        let running = Arc::new(StopWhenDropped(Arc::clone(&shared)));
        Self { shared, tenant: Tenant::default(), running }
    }

    /// The same runtime, acting for another tenant.
    #[must_use]
    pub fn tenant(&self, tenant: Tenant) -> Self {
        Self { shared: Arc::clone(&self.shared), tenant, running: Arc::clone(&self.running) }
    }

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
        let when = When { delay, within: None };
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

    /// Publishes an event inside the caller's own transaction: it is sent if and only if that commits. Events of one topic
    /// and key are first accepted by the broker in the order of their commits (G9); for that, a transaction that publishes
    /// under a key waits for an earlier one that did and has not ended. Call [`PublishedIn::committed`] after the commit;
    /// without it the event leaves at the next poll.
    ///
    /// The store keeps a small row for each key that was ever used, so keys are those of orders or customers, not of events.
    ///
    /// # Errors
    /// When the topic, the key or the event is refused, the connection is not in a transaction, or the store fails. The
    /// caller's transaction may go on.
    ///
    /// # Cancel safety
    /// When dropped, roll the transaction back.
    ///
    /// # Examples
    /// ```
    /// use saga_core::memory::{MemoryStore, MemoryTransport};
    /// use saga_core::transport::{Subscription, Transport};
    /// use saga_core::{Event, Runtime};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct OrderChanged { quantity: u32 }
    ///
    /// impl Event for OrderChanged {
    ///     const NAME: &'static str = "order-changed";
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = MemoryStore::new();
    /// let transport = MemoryTransport::new();
    /// let all = Subscription { name: "stock".into(), topics: vec!["order".into()], prefetch: 10 };
    /// let mut incoming = transport.subscribe(all).await?;
    /// let runtime = Runtime::builder(store.clone()).transport(transport).start().await?;
    ///
    /// let mut transaction = store.transaction();
    /// transaction.conn().put("order 10248", "12")?;
    /// let event = OrderChanged { quantity: 12 };
    /// let published = runtime.publish_in(transaction.conn(), "order", "10248", &event).await?;
    /// transaction.commit()?;
    /// published.committed();
    ///
    /// let message = incoming.receive(1).await?.remove(0).message.expect("an event");
    /// assert_eq!((&*message.key, &*message.event_type), ("10248", "order-changed"));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn publish_in<E: Event>(
        &self,
        conn: &mut S::Conn,
        topic: &str,
        key: impl AsRef<str>,
        event: &E,
    ) -> Result<PublishedIn<S>, PublishError>
    where
        S: StartIn,
    {
        self.shared.publish_in(conn, &self.tenant, topic, key.as_ref(), event).await
    }

    /// Publishes an event of the saga with this key, under a topic of the event's own name: the way in to services that do
    /// something [when events come](crate::choreography). When it returns, the event is durable, and is sent until it was.
    ///
    /// The same event with the same content under the same key is one message, however often and from wherever it is
    /// published. What shall happen together with writes of the application's own is published with
    /// [`publish_in`](Self::publish_in), where each call is a message of its own, under the topic `E::NAME`.
    ///
    /// # Errors
    /// When the key, the event or its name is refused, it is called inside a step, or the store fails. The same call may be
    /// repeated.
    ///
    /// # Cancel safety
    /// When dropped, the event was published or not; publish it again to be sure.
    ///
    /// # Examples
    /// ```
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Event, Runtime, Service, StepError, saga_step};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Clone, Serialize, Deserialize)]
    /// struct OrderPlaced { cents: u64 }
    ///
    /// impl Event for OrderPlaced {
    ///     const NAME: &'static str = "order-placed";
    /// }
    ///
    /// #[saga_step]
    /// async fn note_order(order: OrderPlaced) -> Result<u64, StepError> {
    ///     Ok(order.cents)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let books = Service::named("books").on::<OrderPlaced>().run::<note_order>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).service(&books).start().await?;
    ///
    /// let first = runtime.publish("order-7", &OrderPlaced { cents: 1200 }).await?;
    /// let again = runtime.publish("order-7", &OrderPlaced { cents: 1200 }).await?;
    /// assert_eq!(first, again);
    ///
    /// // What an event asked for has the key of its saga and of the step.
    /// while runtime.saga("order-7>note-order").await?.is_none() {
    ///     tokio::task::yield_now().await;
    /// }
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn publish<E: Event>(&self, key: impl AsRef<str>, event: &E) -> Result<MessageId, PublishError> {
        self.shared.publish_event(&self.tenant, key.as_ref(), event).await
    }

    /// A handle on the saga of that key, to wait for its outcome.
    ///
    /// # Errors
    /// When there is no such saga, or the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn attach(&self, key: impl AsRef<str>) -> Result<Running<S>, RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(key.as_ref())?;
        let row = self.shared.store.saga(&self.tenant, &key).await?;
        let row = row.ok_or_else(|| RuntimeError::NoSaga(key.to_string()))?;
        let slot = self.shared.waiters.slot(row.id);
        self.shared.tell_of(&row);
        Ok(Running::new(&self.shared, slot, row.id, key, true))
    }

    /// What happened to the saga of that key, step by step. Nothing if there is none.
    ///
    /// # Errors
    /// Those of [`Inspector::status`].
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn saga(&self, key: impl AsRef<str>) -> Result<Option<SagaStatus>, RuntimeError> {
        self.inspector().status(key).await
    }

    /// The sagas that pass the filter, by the order of their starts.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn list(&self, filter: SagaFilter) -> Result<Vec<SagaSummary>, RuntimeError> {
        self.inspector().list(filter).await
    }

    /// How many sagas there are in each status; every status is listed.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn count(&self) -> Result<BTreeMap<Status, u64>, RuntimeError> {
        self.inspector().count().await
    }

    /// What an operator can do with the saga of that key, who saw it at this revision
    /// ([`SagaStatus::revision`]). A step that is hosted for another service has the key `key>step`.
    ///
    /// # Errors
    /// When the key is not a legal one.
    pub fn operator(&self, key: impl AsRef<str>, revision: u64) -> Result<Operator<S>, RuntimeError> {
        self.desk().operator(key, revision)
    }

    /// Cancels a saga: it turns round, nothing new of it begins, what is in flight comes to its end, and what took effect is
    /// undone. It can be asked as often as wanted: a saga that compensates or has ended already is left as it is, which
    /// the answer says. When it returns, the saga has turned round for good; wait for its end with
    /// [`Runtime::attach`].
    ///
    /// What waits for its next attempt does not wait for it any longer. A step in another service is waited for, and
    /// undone there.
    ///
    /// # Errors
    /// When the pivot is under way or done, since from there the saga only goes forward; when there is no such saga, it is
    /// a step of another service's saga, or its definition is not known here; or when the store fails.
    ///
    /// # Cancel safety
    /// When dropped, the saga was cancelled or not; the same call again says which.
    ///
    /// # Examples
    /// ```
    /// use saga_core::engine::Cancellation;
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::store::Status;
    /// use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation)]
    /// async fn ask_for_price(_item: String) -> Result<(), StepError> {
    ///     Err(StepError::retry("nobody answers"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let offer = Saga::named("offer").input::<String>().step::<ask_for_price>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&offer).start().await?;
    ///
    /// let started = runtime.start(&offer, "offer-1", "chai".to_owned()).await?;
    /// assert_eq!(runtime.cancel("offer-1", "the customer left").await?, Cancellation::Begun);
    ///
    /// let outcome = started.outcome().await?;
    /// assert!(matches!(outcome, Outcome::Compensated { cancelled: true, .. }));
    /// let again = runtime.cancel("offer-1", "the customer left").await?;
    /// assert_eq!(again, Cancellation::Ended(Status::Compensated));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self, key: impl AsRef<str>, reason: &str) -> Result<Cancellation, RuntimeError> {
        self.desk().cancel(key, reason).await
    }

    /// What people can do with sagas, where it is to be said who does it.
    pub fn desk(&self) -> SagaDesk<S> {
        SagaDesk::of(&self.shared, &self.tenant)
    }

    /// Sends a signal to the saga of that key, for the step that waits for it: see
    /// [`SagaBuilder::wait_for`](crate::saga::SagaBuilder::wait_for). When it returns, what the answer says is durable. It can
    /// be sent as often as wanted under the same `id`, and counts once; of two with different ids the first one counts.
    ///
    /// # Errors
    /// When there is no such saga yet: send it again later. When the saga has no step that waits for such a signal, its
    /// definition is not known here, or the store fails.
    ///
    /// # Cancel safety
    /// When dropped, the signal was received or not; the same call again says which.
    pub async fn signal<T: Signal>(
        &self,
        key: impl AsRef<str>,
        id: impl AsRef<str>,
        signal: &T,
    ) -> Result<Receipt, RuntimeError> {
        SagaDesk::of(&self.shared, &self.tenant).signal(key, id, signal).await
    }

    /// The messages that could not be handled, and what can be done with them.
    pub fn dead_letters(&self) -> DeadLetterDesk<S> {
        DeadLetterDesk::of(&self.shared, &self.tenant)
    }

    /// What waits to be sent, and what can be done with what cannot be.
    pub fn outbox(&self) -> OutboxDesk<S> {
        OutboxDesk::of(&self.shared, &self.tenant)
    }

    /// Answers what happened to sagas.
    pub fn inspector(&self) -> Inspector<S> {
        Inspector::with(&self.shared.store, &self.tenant, &self.shared.definitions)
    }

    /// The store.
    pub fn store(&self) -> &Arc<S> {
        &self.shared.store
    }

    fn running_of(&self, started: StartedSaga) -> Running<S> {
        if let Some(row) = &started.known {
            self.shared.tell_of(row);
        }
        Running::new(&self.shared, started.slot, started.id, started.key, started.known.is_some())
    }

    /// What this runtime has done since it started.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics.read()
    }

    /// How the store and the transport stand, as the calls of this runtime found them. What a transport knows of its own
    /// connections it says itself.
    pub fn health(&self) -> Health {
        let now = self.shared.env.now();
        Health {
            store: self.shared.store_trouble.standing(now),
            transport: self.shared.transport_trouble.standing(now),
        }
    }

    /// Takes nothing new, waits for what is under way (at most `drain_limit`), gives the rest back, and ends.
    ///
    /// # Cancel safety
    /// When dropped, the runtime takes nothing new any more; call it again to wait for the rest.
    pub async fn shutdown(&self) {
        self.shared.drain().await;
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

impl<S: Store> Clone for Runtime<S> {
    fn clone(&self) -> Self {
        self.tenant(self.tenant.clone())
    }
}

impl<S: Store> fmt::Debug for Runtime<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

impl<S: Store> fmt::Debug for StartedIn<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartedIn").field("already_known", &self.already_known).finish_non_exhaustive()
    }
}
