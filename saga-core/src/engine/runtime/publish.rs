//! Publishing an event: in the caller's own transaction, or in one of its own.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::engine::Engine;
use crate::engine::commit::changes;
use crate::engine::context::is_inside_step;
use crate::engine::message::request_hash;
use crate::engine::store_calls::store_error;
use crate::key::{InvalidName, Key, Tenant, check_topic};
use crate::store::{Headers, MessageId, NewMessage, StartIn, Store, StoreError};

/// Why an event was not published. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The topic or the ordering key is not a legal one.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The topic is the name of a saga, whose events have an order of their own.
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
    /// It was called inside a step, whose transaction would not contain it.
    #[error("inside a step, tell it with `ctx.emit`, which commits together with the step")]
    InsideStep,
    /// The store failed, or the connection is not in a transaction.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An event that is to be published, with the key that the caller gave.
pub(crate) struct EncodedEvent {
    pub(crate) name: &'static str,
    pub(crate) topic: String,
    pub(crate) key: String,
    pub(crate) payload: Result<Vec<u8>, serde_json::Error>,
}

/// The id of an event by its content: the same for the same event of the same saga under the same topic.
fn id_of(tenant: &Tenant, (topic, name): (&str, &str), key: &Key, payload: &[u8]) -> MessageId {
    let mut hash = Sha256::new_with_prefix("event-1");
    let content = [tenant.as_str().as_bytes(), name.as_bytes(), key.as_str().as_bytes(), &request_hash(payload)];
    let topic = Some(topic.as_bytes()).filter(|topic| *topic != name.as_bytes());
    for part in content.into_iter().chain(topic) {
        hash.update(part);
        hash.update([0]);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    MessageId(Uuid::from_bytes(bytes))
}

impl<S: StartIn> Engine<S> {
    pub(crate) async fn publish_in_tx(
        &self,
        conn: &mut S::Conn,
        tenant: &Tenant,
        event: EncodedEvent,
    ) -> Result<MessageId, PublishError> {
        let (name, topic) = (event.name, event.topic.clone());
        let (key, payload) = self.check_published(event)?;
        let message = MessageId(self.ctx.random_uuid());
        // The store counts the positions.
        let new =
            NewMessage { position: 0, ..NewMessage::event(message, tenant, (&topic, key.as_str()), name, payload) };
        self.ctx.store.publish_in(conn, new).await?;
        Ok(message)
    }
}

impl<S: Store> Engine<S> {
    /// Publishes an event that the same call publishes once, however often it is made.
    pub(crate) async fn publish_event(&self, tenant: &Tenant, event: EncodedEvent) -> Result<MessageId, PublishError> {
        if is_inside_step() {
            return Err(PublishError::InsideStep);
        }
        let _under_way = self.ctx.lifecycle.enter();
        let (name, topic) = (event.name, event.topic.clone());
        let (key, payload) = self.check_published(event)?;
        let id = id_of(tenant, (&topic, name), &key, &payload);
        // Its ordering key is its id: nothing is promised about its order.
        let message = NewMessage {
            headers: Headers { saga_key: Some(key.to_string()), ..Headers::default() },
            ..NewMessage::event(id, tenant, (&topic, &id.to_string()), name, payload)
        };
        let changes = changes::send(vec![message]);
        let recorded = self.committer.recorder.record(changes).await.map_err(|error| store_error(&error))?;
        debug_assert!(recorded.is_ok(), "a message alone cannot miss");
        self.committer.outbox.wake_relay();
        Ok(id)
    }

    fn check_published(&self, event: EncodedEvent) -> Result<(Key, Vec<u8>), PublishError> {
        check_topic(&event.topic)?;
        if self.ctx.definition_ids.iter().any(|definition| *definition.name == *event.topic) {
            return Err(PublishError::TopicOfSaga(event.topic));
        }
        let (key, payload) = (Key::new(event.key)?, event.payload?);
        let (bytes, max) = (payload.len(), self.ctx.settings.payload_bytes_max);
        if bytes > max {
            return Err(PublishError::TooLarge { bytes, max });
        }
        Ok((key, payload))
    }
}
