//! Signatures of messages: HMAC-SHA256 (RFC 2104) over everything that a receiver decides by.

use std::fmt;
use std::sync::Arc;

use hmac::digest::array::Array;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

use crate::store::Message;

/// The shortest secret, in bytes: as long as the hash, which RFC 2104 advises.
const SECRET_BYTES_MIN: usize = 32;
/// The longest id of a key, in bytes.
const ID_BYTES_MAX: usize = 64;
/// What the signed text begins with. Another text for the same message needs another version.
const VERSION: &[u8] = b"saga-signature-1";
/// The length of a field that is absent, so that it is told from an empty one.
const ABSENT: u64 = u64::MAX;

/// A secret that services share, with an id that each message carries.
///
/// A process with the secret can sign as the service that the key is for, so each sender should have its own key, which only the
/// sender and its receivers know. To rotate it, let receivers accept the new key beside the old one, then let
/// the sender sign with it, then remove the old one.
///
/// ```
/// use saga_core::authorization::SigningKey;
///
/// let key = SigningKey::new("orders-2026-11", *b"an example of thirty-two bytes!!").unwrap();
/// assert!(!format!("{key:?}").contains("example"));
/// assert!(SigningKey::new("orders-2026-11", *b"too short").is_err());
/// ```
#[derive(Clone)]
pub struct SigningKey {
    id: Arc<str>,
    secret: Arc<[u8]>,
}

/// Why a signing key was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SigningKeyError {
    /// The id is invalid.
    #[error("the id of a signing key must be 1 to {ID_BYTES_MAX} characters of [A-Za-z0-9._-], not {id:?}")]
    Id {
        /// The id that was given.
        id: String,
    },
    /// The secret is too short.
    #[error("the secret of the signing key `{id}` has {bytes} bytes; give at least {SECRET_BYTES_MIN} random ones")]
    ShortSecret {
        /// The id of the key.
        id: String,
        /// How many bytes the secret has.
        bytes: usize,
    },
}

impl SigningKey {
    /// Makes a key with this id, 1 to 64 characters of `[A-Za-z0-9._-]`, and this secret of at least 32 bytes.
    ///
    /// # Errors
    /// When the id has other characters, or the secret is shorter.
    pub fn new(id: &str, secret: impl AsRef<[u8]>) -> Result<Self, SigningKeyError> {
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if id.is_empty() || id.len() > ID_BYTES_MAX || !id.bytes().all(is_legal) {
            return Err(SigningKeyError::Id { id: id.chars().take(ID_BYTES_MAX).collect() });
        }
        let secret = secret.as_ref();
        if secret.len() < SECRET_BYTES_MIN {
            return Err(SigningKeyError::ShortSecret { id: id.to_owned(), bytes: secret.len() });
        }
        Ok(Self { id: id.into(), secret: secret.into() })
    }

    /// The id, which each message carries.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether both have the same secret.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.id == other.id && self.secret == other.secret
    }

    /// Signs a message: sets the headers `saga-key-id` and `saga-signature`.
    pub fn sign(&self, message: &mut Message) {
        message.headers.key_id = Some(self.id.as_ref().to_owned());
        message.headers.signature = Some(to_hex(&self.code(message).finalize().into_bytes()));
    }

    /// Whether the message carries the signature of this key. The comparison takes constant time.
    pub(crate) fn verifies(&self, message: &Message) -> bool {
        let signature = message.headers.signature.as_deref().and_then(from_hex);
        signature.is_some_and(|signature| self.code(message).verify_slice(&signature).is_ok())
    }

    /// The authentication code of the message, each field with its length in front, so that no two messages have one text.
    fn code(&self, message: &Message) -> Hmac<Sha256> {
        // HMAC takes a key of any length; an empty one, which cannot be, would only verify nothing.
        let mut code = Hmac::<Sha256>::new_from_slice(&self.secret).unwrap_or_else(|_| Hmac::new(&Array::default()));
        code.update(VERSION);
        let headers = &message.headers;
        let (id, committed_at) = (message.id.to_string(), message.committed_at.0.to_string());
        let correlation = headers.correlation.map(|id| id.to_string());
        let fields = [
            Some(self.id.as_ref()),
            Some(id.as_str()),
            Some(message.kind.as_str()),
            Some(message.tenant.as_str()),
            Some(message.topic.as_str()),
            Some(message.key.as_str()),
            Some(message.event_type.as_str()),
            Some(committed_at.as_str()),
            headers.saga_key.as_deref(),
            headers.step.as_deref(),
            headers.service.as_deref(),
            headers.reply_to.as_deref(),
            correlation.as_deref(),
            headers.answer.map(crate::store::Answer::as_str),
        ];
        for field in fields {
            code.update(&field.map_or(ABSENT, |field| field.len() as u64).to_be_bytes());
            code.update(field.unwrap_or_default().as_bytes());
        }
        code.update(&(message.payload.len() as u64).to_be_bytes());
        code.update(&message.payload);
        // A message without locks has the text that it had before messages could carry some.
        if let Some(locks) = &headers.locks {
            code.update(&(locks.len() as u64).to_be_bytes());
            code.update(locks.as_bytes());
        }
        code
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::key::Tenant;
    use crate::store::{Answer, Headers, MessageId, MessageKind, Timestamp, service_topic};

    fn key(id: &str) -> SigningKey {
        SigningKey::new(id, [7; 32]).unwrap()
    }

    fn signed() -> Message {
        let mut message = Message {
            id: MessageId(Uuid::from_u128(7)),
            kind: MessageKind::Reply,
            tenant: Tenant::default(),
            topic: service_topic("orders"),
            key: "order-1".into(),
            event_type: "charge-card".into(),
            payload: b"{\"id\":1}".to_vec(),
            committed_at: Timestamp(12),
            headers: Headers {
                saga_key: Some("order-1".into()),
                step: Some("charge-card".into()),
                service: Some("orders".into()),
                reply_to: Some("payments".into()),
                correlation: Some(MessageId(Uuid::from_u128(6))),
                answer: Some(Answer::Done),
                ..Headers::default()
            },
        };
        key("payments-1").sign(&mut message);
        message
    }

    #[test]
    fn a_signature_is_good_for_its_message_and_key_only() {
        let message = signed();
        assert!(key("payments-1").verifies(&message));
        assert!(!key("payments-2").verifies(&message), "the id is signed as well");
        assert!(!SigningKey::new("payments-1", [8; 32]).unwrap().verifies(&message));
    }

    #[test]
    fn every_field_that_a_receiver_decides_by_is_signed() {
        type Change = fn(&mut Message);
        let changes: [(&str, Change); 18] = [
            ("id", |message| message.id = MessageId(Uuid::from_u128(8))),
            ("kind", |message| message.kind = MessageKind::Report),
            ("tenant", |message| message.tenant = Tenant::new("other").unwrap()),
            ("topic", |message| message.topic = service_topic("shipping")),
            ("ordering key", |message| message.key = "order-2".into()),
            ("event type", |message| message.event_type = "charge-card:undo".into()),
            ("payload", |message| message.payload = b"{\"id\":2}".to_vec()),
            ("commit time", |message| message.committed_at = Timestamp(13)),
            ("saga key", |message| message.headers.saga_key = Some("order-2".into())),
            ("step", |message| message.headers.step = Some("ship".into())),
            ("service", |message| message.headers.service = None),
            ("reply to", |message| message.headers.reply_to = Some("shipping".into())),
            ("correlation", |message| message.headers.correlation = Some(MessageId(Uuid::from_u128(9)))),
            ("answer", |message| message.headers.answer = Some(Answer::Rejected)),
            ("locks", |message| message.headers.locks = Some("{}".into())),
            ("no signature", |message| message.headers.signature = None),
            ("half a signature", |message| message.headers.signature.as_mut().unwrap().truncate(32)),
            ("no hex", |message| message.headers.signature = Some("signature".into())),
        ];
        for (what, change) in changes {
            let mut message = signed();
            change(&mut message);
            assert!(!key("payments-1").verifies(&message), "{what}");
        }
    }

    #[test]
    fn the_trace_context_may_change_on_the_way() {
        let mut message = signed();
        message.headers.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
        assert!(key("payments-1").verifies(&message));
    }

    #[test]
    fn text_cannot_move_from_one_field_to_the_next() {
        let mut message = signed();
        message.headers.saga_key = Some("order-1charge".into());
        message.headers.step = Some("-card".into());
        assert!(!key("payments-1").verifies(&message));
    }
}
