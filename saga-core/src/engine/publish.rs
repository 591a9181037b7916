//! Publishing an event in the caller's own transaction.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use crate::key::{InvalidName, Key, Tenant, check_topic};
use crate::step::Event;
use crate::store::{Headers, MessageId, MessageKind, NewMessage, StartIn, Store, StoreError, lane_of};

/// Why an event was not published. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The topic or the ordering key is not a legal one.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The topic is the name of a saga, whose events are in an order of their own.
    #[error("the topic `{0}` is the name of a saga, whose steps emit the events of that topic; take another one")]
    TopicOfSaga(String),
    /// The event cannot be encoded.
    #[error("the event cannot be stored: {0}")]
    Event(#[from] serde_json::Error),
    /// The event is longer than the setting allows.
    #[error(
        "the event has {bytes} bytes; `payload_bytes_max` allows {max}, so store it elsewhere and pass a reference"
    )]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The store failed, or the connection is not in a transaction.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An event that was published inside the caller's transaction.
pub struct PublishedIn<S: Store> {
    shared: Arc<Shared<S>>,
    message: MessageId,
}

impl<S: Store> PublishedIn<S> {
    /// The message's id, by which receivers tell duplicates.
    pub fn message(&self) -> MessageId {
        self.message
    }

    /// Says that the transaction was committed, so that the event is sent at once.
    pub fn committed(self) {
        self.shared.tell_of_messages();
    }
}

impl<S: StartIn> Shared<S> {
    pub(super) async fn publish_in<E: Event>(
        self: &Arc<Self>,
        conn: &mut S::Conn,
        tenant: &Tenant,
        topic: &str,
        key: &str,
        event: &E,
    ) -> Result<PublishedIn<S>, PublishError> {
        check_topic(topic)?;
        if self.known.iter().any(|definition| &*definition.name == topic) {
            return Err(PublishError::TopicOfSaga(topic.to_owned()));
        }
        let key = Key::new(key)?;
        let payload = serde_json::to_vec(event)?;
        let (bytes, max) = (payload.len(), self.settings.payload_bytes_max);
        if bytes > max {
            return Err(PublishError::TooLarge { bytes, max });
        }
        let message = MessageId(self.random_uuid());
        let new = NewMessage {
            id: message,
            kind: MessageKind::Event,
            tenant: tenant.clone(),
            aggregate_type: topic.to_owned(),
            aggregate_id: key.to_string(),
            event_type: E::NAME.to_owned(),
            payload,
            // The store counts.
            position: 0,
            lane: lane_of(tenant, topic, key.as_str()),
            headers: Headers::default(),
            due_in: Duration::ZERO,
        };
        self.store.publish_in(conn, new).await?;
        Ok(PublishedIn { shared: Arc::clone(self), message })
    }
}

impl<S: Store> fmt::Debug for PublishedIn<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishedIn").field("message", &self.message).finish_non_exhaustive()
    }
}
