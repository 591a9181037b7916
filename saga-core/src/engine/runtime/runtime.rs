//! The runtime, as users see it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::engine::Engine;
use super::handle::SagaHandle;
use super::publish::{PublishError, UncommittedPublish};
use crate::engine::admin::{SagaQuery, SagaStatus, SagaSummary};
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::health::Health;
use crate::engine::statistics::Statistics;
use crate::key::{Key, Tenant};
use crate::step::Event;
use crate::store::{MessageId, SagaFilter, StartIn, Status, Store};
use crate::transport::Incoming;

/// A runtime: it starts sagas and brings them to their end. Cheap to clone; it stops when the last clone is dropped,
/// and what it had not finished goes on when a runtime runs again.
pub struct Runtime<S: Store> {
    pub(crate) engine: Arc<Engine<S>>,
    pub(crate) tenant: Tenant,
    /// Shared by all clones: the last one stops the tasks.
    running: Arc<StopWhenDropped<S>>,
}

struct StopWhenDropped<S: Store>(Arc<Engine<S>>);

impl<S: Store> Drop for StopWhenDropped<S> {
    fn drop(&mut self) {
        self.0.ctx.lifecycle.stop();
    }
}

impl<S: Store> Runtime<S> {
    pub(crate) fn run(engine: Arc<Engine<S>>, incoming: Vec<Option<Box<dyn Incoming>>>) -> Self {
        engine.spawn_all(incoming);
        let running = Arc::new(StopWhenDropped(Arc::clone(&engine)));
        Self { engine, tenant: Tenant::default(), running }
    }

    /// The same runtime, acting for another tenant.
    #[must_use]
    pub fn tenant(&self, tenant: Tenant) -> Self {
        Self { engine: Arc::clone(&self.engine), tenant, running: Arc::clone(&self.running) }
    }

    /// Publishes an event inside the caller's own transaction: it is sent if and only if that commits. Events of one topic
    /// and key are first accepted by the broker in the order of their commits (G9); for that, a transaction that publishes
    /// under a key waits for an earlier one that did and has not ended. Call [`UncommittedPublish::committed`] after the commit;
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
    /// let published = runtime.publish_in_tx(transaction.conn(), "order", "10248", &event).await?;
    /// transaction.commit()?;
    /// published.committed();
    ///
    /// let message = incoming.receive(1).await?.remove(0).message.expect("an event");
    /// assert_eq!((&*message.key, &*message.event_type), ("10248", "order-changed"));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn publish_in_tx<E: Event>(
        &self,
        conn: &mut S::Conn,
        topic: &str,
        key: impl AsRef<str>,
        event: &E,
    ) -> Result<UncommittedPublish<S>, PublishError>
    where
        S: StartIn,
    {
        self.engine.publish_in_tx(conn, &self.tenant, topic, key.as_ref(), event).await
    }

    /// Publishes an event of the saga with this key, under a topic of the event's own name: the way in to services that do
    /// something [when events come](crate::choreography). When it returns, the event is durable, and is sent until it was.
    ///
    /// The same event with the same content under the same key is one message, however often and from wherever it is
    /// published. What shall happen together with writes of the application's own is published with
    /// [`publish_in_tx`](Self::publish_in_tx), where each call is a message of its own, under the topic `E::NAME`.
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
        self.engine.publish_event(&self.tenant, key.as_ref(), event).await
    }

    /// A handle on the saga of that key, to wait for its outcome.
    ///
    /// # Errors
    /// When there is no such saga, or the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn attach(&self, key: impl AsRef<str>) -> Result<SagaHandle<S>, RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(key.as_ref())?;
        let row = self.engine.ctx.store.saga(&self.tenant, &key).await?;
        let row = row.ok_or_else(|| RuntimeError::NoSaga(key.to_string()))?;
        let slot = self.engine.committer.waiters.slot(row.id);
        self.engine.outcomes.tell_of(&row);
        Ok(SagaHandle::new(&self.engine, slot, row.id, key, true))
    }

    /// What happened to the saga of that key, step by step. Nothing if there is none.
    ///
    /// # Errors
    /// Those of [`SagaQuery::describe`].
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn saga(&self, key: impl AsRef<str>) -> Result<Option<SagaStatus>, RuntimeError> {
        self.query().describe(key).await
    }

    /// The sagas that pass the filter, by the order of their starts.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn list(&self, filter: SagaFilter) -> Result<Vec<SagaSummary>, RuntimeError> {
        self.query().list(filter).await
    }

    /// How many sagas there are in each status; every status is listed.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn count(&self) -> Result<BTreeMap<Status, u64>, RuntimeError> {
        self.query().count().await
    }

    /// Answers what happened to sagas.
    pub fn query(&self) -> SagaQuery<S> {
        SagaQuery::with(&self.engine.ctx.store, &self.tenant, &self.engine.ctx.definitions)
    }

    /// The store.
    pub fn store(&self) -> &Arc<S> {
        &self.engine.ctx.store
    }

    /// What this runtime has done since it started.
    pub fn statistics(&self) -> Statistics {
        self.engine.statistics.read()
    }

    /// How the store and the transport stand, as the calls of this runtime found them, and what of the runtime panicked. What
    /// a transport knows of its own connections it says itself.
    pub fn health(&self) -> Health {
        let now = self.engine.ctx.env.now();
        Health {
            store: self.engine.ctx.health.store.standing(now),
            transport: self.engine.ctx.health.transport.standing(now),
            panicked: self.engine.ctx.lifecycle.supervisor.read(now),
        }
    }

    /// Takes nothing new, waits for what is under way (at most `shutdown_timeout`), gives the rest back, and ends.
    ///
    /// # Cancel safety
    /// When dropped, the runtime takes nothing new any more; call it again to wait for the rest.
    pub async fn shutdown(&self) {
        self.engine.shut_down().await;
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
