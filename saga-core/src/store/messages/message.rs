//! Messages, as stores and transports see them.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::headers::Headers;
use crate::key::Tenant;
use crate::store::{MessageId, Timestamp};

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The same each time that it is sent: receivers detect duplicates by it.
    pub id: MessageId,
    /// The kind.
    pub kind: MessageKind,
    /// The tenant.
    pub tenant: Tenant,
    /// What the message is about. For a message to one service: the service's [`service_topic`].
    pub topic: String,
    /// The ordering key: messages with one key are first delivered in the order of their commits.
    pub key: String,
    /// The event's name. For a message about a step: the step as in its step key, such as `charge-card:undo`.
    pub event_type: String,
    /// The encoded content.
    pub payload: Vec<u8>,
    /// When it was committed, by the sender's database.
    pub committed_at: Timestamp,
    /// The headers.
    pub headers: Headers,
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageKind {
    /// Something happened. Every subscriber gets it.
    #[default]
    Event,
    /// "Do this step", addressed to one service.
    Command,
    /// "Undo this step", addressed to one service.
    Undo,
    /// The outcome of a command or of an undo, addressed to the service that sent it.
    Reply,
    /// The outcome of a step that an event started, addressed to the service that follows the event's saga.
    Fact,
    /// The progress of a running command or undo, addressed to the service that sent it. It decides nothing.
    Report,
    /// Sagas that are closed: their records are deleted. Addressed to a service that did steps of them.
    Closed,
}

impl MessageKind {
    const ALL: [Self; 7] =
        [Self::Event, Self::Command, Self::Undo, Self::Reply, Self::Fact, Self::Report, Self::Closed];

    /// The kind as it is stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Command => "command",
            Self::Undo => "undo",
            Self::Reply => "reply",
            Self::Fact => "fact",
            Self::Report => "report",
            Self::Closed => "closed",
        }
    }

    /// The kind of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The topic of messages to one service. No event has this topic, since an event's name has no colon.
pub fn service_topic(service: &str) -> String {
    format!("service:{service}")
}

/// The head of a message as [`Message::encode`] writes it.
#[derive(Serialize, Deserialize)]
struct Head {
    id: String,
    kind: MessageKind,
    tenant: String,
    topic: String,
    key: String,
    #[serde(rename = "type")]
    event_type: String,
    committed_at: Timestamp,
    headers: String,
}

impl Head {
    fn of(message: &Message) -> Self {
        Self {
            id: message.id.to_string(),
            kind: message.kind,
            tenant: message.tenant.to_string(),
            topic: message.topic.clone(),
            key: message.key.clone(),
            event_type: message.event_type.clone(),
            committed_at: message.committed_at,
            headers: message.headers.encode(),
        }
    }
}

impl Message {
    /// A message of the default tenant, without a key, a type and a content.
    pub fn new(id: MessageId, kind: MessageKind, topic: impl Into<String>) -> Self {
        Self {
            id,
            kind,
            tenant: Tenant::default(),
            topic: topic.into(),
            key: String::new(),
            event_type: String::new(),
            payload: Vec::new(),
            committed_at: Timestamp::default(),
            headers: Headers::default(),
        }
    }

    /// What a receiver tells duplicates of the message's effect by: of a command or an undo the key of the step, such as
    /// `order-1:charge-card` or `order-1:charge-card:undo`, which stays the same where the message is sent anew under another id; of
    /// any other message its id.
    pub fn idempotency_key(&self) -> String {
        match (self.kind, &self.headers.saga_key) {
            (MessageKind::Command | MessageKind::Undo, Some(key)) => format!("{key}:{}", self.event_type),
            _ => self.id.to_string(),
        }
    }

    /// The whole message as bytes, for a store that keeps one in a single column.
    pub fn encode(&self) -> Vec<u8> {
        let head = Head::of(self);
        // Texts and numbers always encode, and JSON on one line has no line feed in it.
        let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend(&self.payload);
        bytes
    }

    /// The message that [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When the bytes are not ones that it wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let unreadable = |problem: &dyn fmt::Display| format!("the stored message is not readable: {problem}");
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| unreadable(&"it has no head"))?;
        let head: Head = serde_json::from_slice(&bytes[..end]).map_err(|error| unreadable(&error))?;
        Ok(Self {
            id: MessageId(Uuid::parse_str(&head.id).map_err(|error| unreadable(&error))?),
            kind: head.kind,
            tenant: Tenant::from_stored(&head.tenant).map_err(|error| unreadable(&error))?,
            topic: head.topic,
            key: head.key,
            event_type: head.event_type,
            payload: bytes[end + 1..].to_vec(),
            committed_at: head.committed_at,
            headers: Headers::decode(&head.headers).map_err(|error| unreadable(&error))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::messages::headers::tests::headers;

    fn message() -> Message {
        Message {
            id: MessageId(Uuid::from_u128(7)),
            kind: MessageKind::Reply,
            tenant: Tenant::default(),
            topic: service_topic("orders"),
            key: "k\n\"1\"".into(),
            event_type: "charge-card".into(),
            payload: vec![0, 255, b'\n', 1],
            committed_at: Timestamp(12),
            headers: headers(),
        }
    }

    /// G3: a receiver that does not know this project tells the step by its key.
    #[test]
    fn g3_the_idempotency_key_of_a_command_is_the_key_of_its_step() {
        let told =
            |kind, event_type: &str| Message { kind, event_type: event_type.into(), ..message() }.idempotency_key();
        assert_eq!(told(MessageKind::Command, "charge-card"), "8f14e45f:charge-card");
        assert_eq!(told(MessageKind::Undo, "charge-card:undo"), "8f14e45f:charge-card:undo");
        for kind in [MessageKind::Event, MessageKind::Reply, MessageKind::Report] {
            assert_eq!(
                told(kind, "charge-card"),
                message().id.to_string(),
                "{kind:?}: several of them are about one step"
            );
        }
        let strange = Message { kind: MessageKind::Command, headers: Headers::default(), ..message() };
        assert_eq!(strange.idempotency_key(), strange.id.to_string(), "a command that names no saga");
    }

    #[test]
    fn a_message_is_decoded_as_it_was_encoded() {
        assert_eq!(Message::decode(&message().encode()).unwrap(), message());
        let bare = Message { headers: Headers::default(), payload: Vec::new(), ..message() };
        assert_eq!(Message::decode(&bare.encode()).unwrap(), bare);
        assert!(Message::decode(b"{}").is_err() && Message::decode(b"{}\n").is_err());
    }
}
