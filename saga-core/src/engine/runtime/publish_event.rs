//! Publishing an event, as callers see it.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;

use super::engine::Engine;
use super::publish::{EncodedEvent, PublishError};
use super::runtime::Runtime;
use crate::env::{Activity, during};
use crate::step::Event;
use crate::store::{MessageId, StartIn, Store};

impl<S: Store> Runtime<S> {
    /// Publishes an event of the saga with this key, under a topic of the event's own name or
    /// [another one](PublishEvent::topic): the way in to services that
    /// [react to events](crate::choreography). When the call is awaited and returns, the event is durable, and the relay
    /// sends it until the broker has confirmed it. Awaited, it returns the id of the message, by which receivers
    /// recognize duplicates.
    ///
    /// The same event with the same content under the same key and topic is one message, however often and from whichever process
    /// it is published. An event that belongs to writes of the application is published
    /// [in their transaction](PublishEvent::in_tx), where each call is a message of its own.
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
    /// // The step that reacts to an event is a saga under the key of the event's saga and the name of the step.
    /// while runtime.status("order-7>note-order").await?.is_none() {
    ///     tokio::task::yield_now().await;
    /// }
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn publish<E: Event>(&self, key: impl AsRef<str>, event: &E) -> PublishEvent<'_, S> {
        let (key, payload) = (key.as_ref().to_owned(), serde_json::to_vec(event));
        let event = EncodedEvent { name: E::NAME, topic: E::NAME.to_owned(), key, payload };
        PublishEvent { runtime: self, event }
    }
}

/// An event that is to be published, which [`Runtime::publish`] returns. Nothing happens until it is awaited.
///
/// # Errors
/// Those of [`Runtime::publish`].
///
/// # Cancel safety
/// That of [`Runtime::publish`].
#[must_use = "the event is published when this is awaited"]
pub struct PublishEvent<'a, S: Store> {
    runtime: &'a Runtime<S>,
    event: EncodedEvent,
}

impl<S: Store> PublishEvent<'_, S> {
    /// Publishes under this topic instead of the event's own name.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.event.topic = topic.into();
        self
    }

    /// Publishes the event in the caller's transaction: it is sent if and only if that commits. Each call is a message of
    /// its own. Call [`UncommittedPublish::committed`] after the commit; without it the relay sends the event after its
    /// next poll.
    ///
    /// The broker accepts events of one topic and key in the order of their commits (G9); for that, a transaction that
    /// publishes under a key waits until an earlier transaction that published under it has ended. The store keeps a small
    /// row for each key used within `retention`, in a store whose runtimes run the maintenance task, so use keys of orders or
    /// customers, not of events.
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
    /// let published = runtime.publish("10248", &event).topic("order").in_tx(transaction.conn()).await?;
    /// transaction.commit()?;
    /// published.committed();
    ///
    /// let message = incoming.receive(1).await?.remove(0).message.expect("an event");
    /// assert_eq!((&*message.key, &*message.event_type), ("10248", "order-changed"));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn in_tx(self, conn: &mut S::Conn) -> Result<UncommittedPublish<S>, PublishError>
    where
        S: StartIn,
    {
        let Self { runtime, event } = self;
        let engine = &runtime.engine;
        let message = engine.publish_in_tx(conn, &runtime.tenant, event).await?;
        Ok(UncommittedPublish { engine: Arc::clone(engine), message })
    }
}

impl<'a, S: Store> IntoFuture for PublishEvent<'a, S> {
    type Output = Result<MessageId, PublishError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { runtime, event } = self;
        let engine = &runtime.engine;
        Box::pin(async move {
            let publishing = pin!(engine.publish_event(&runtime.tenant, event));
            during(&*engine.ctx.env, Activity::Waiting, publishing).await
        })
    }
}

impl<S: Store> fmt::Debug for PublishEvent<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, .. } = self;
        f.debug_struct("PublishEvent").field("event", &event.name).field("key", &event.key).finish_non_exhaustive()
    }
}

/// An event that was published inside the caller's transaction.
pub struct UncommittedPublish<S: Store> {
    engine: Arc<Engine<S>>,
    message: MessageId,
}

impl<S: Store> UncommittedPublish<S> {
    /// The id of the message, by which receivers recognize duplicates.
    pub fn message(&self) -> MessageId {
        self.message
    }

    /// Says that the transaction was committed, so that the event is sent at once.
    pub fn committed(self) {
        self.engine.committer.outbox.wake_relay();
    }
}

impl<S: Store> fmt::Debug for UncommittedPublish<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UncommittedPublish").field("message", &self.message).finish_non_exhaustive()
    }
}
