//! How a message looks in SQS, as `docs/wire.md` describes it: its head is one attribute, its payload the body.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use saga_core::store::MessageId;
use saga_core::transport::{Headers, Message, MessageKind, Unreadable};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::body::{self, Encoding};
use crate::names::{Names, hex, is_service};
use crate::text::{at_most, is_carried};

/// The attribute with the head of the message, as JSON.
pub(crate) const HEAD: &str = "saga";
/// The attribute that says how the payload stands in the body; without it the body is the payload.
pub(crate) const ENCODING: &str = "saga-encoding";
/// The type of both attributes.
pub(crate) const STRING: &str = "String";

/// The longest text of the head, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// The longest message, in bytes, with its attributes: a limit of SQS.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// The longest deduplication id, in bytes: a limit of SQS.
const DEDUPLICATION_ID_BYTES_MAX: usize = 128;
/// How many bytes of the hash are in a group id.
const GROUP_BYTES: usize = 16;

/// Where a message is sent to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum To {
    /// The queue of a service, by its name.
    Queue(String),
    /// An SNS topic, by its name.
    Topic(String),
}

/// A message as it is handed to SQS or SNS.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) to: To,
    /// Whether it is for one service. A message to a service that never subscribed is refused.
    pub(crate) is_addressed: bool,
    /// Messages with one group are received in their order.
    pub(crate) group: String,
    /// What SQS tells repetitions of one request by.
    pub(crate) deduplication: String,
    pub(crate) head: String,
    pub(crate) encoding: Encoding,
    pub(crate) body: String,
}

impl Outgoing {
    /// How many bytes count against the limits of a message and of a request.
    pub(crate) fn bytes(&self) -> usize {
        let encoding = self.encoding.name().map_or(0, |name| ENCODING.len() + STRING.len() + name.len());
        self.body.len() + HEAD.len() + STRING.len() + self.head.len() + encoding
    }
}

/// One call of `publish`: its number is part of the deduplication ids. The id of a message is not enough: for five minutes SQS
/// would swallow what is sent again on purpose, such as a command whose reply was lost, or a replayed letter.
#[derive(Debug)]
pub(crate) struct Call {
    number: Uuid,
}

impl Call {
    pub(crate) fn new() -> Self {
        Self { number: Uuid::new_v4() }
    }

    fn deduplication(&self, id: MessageId, index: usize) -> String {
        format!("{id}.{}.{index}", self.number.simple())
    }
}

/// Writes down the message with this place in a call.
///
/// # Errors
/// Says which part of the message cannot be carried.
pub(crate) fn encode(
    message: Message,
    index: usize,
    call: &Call,
    names: &Names,
    payload_bytes_max: usize,
) -> Result<Outgoing, String> {
    let to = if is_service(&message.topic) {
        To::Queue(names.queue(&message.topic)?)
    } else {
        To::Topic(names.topic(&message.topic)?)
    };
    check(&message)?;
    at_most("the payload", message.payload.len(), payload_bytes_max)?;
    let deduplication = call.deduplication(message.id, index);
    at_most("the deduplication id", deduplication.len(), DEDUPLICATION_ID_BYTES_MAX)?;
    let is_addressed = message.kind != MessageKind::Event;
    let group = group(&message);
    let head = Message { payload: Vec::new(), ..message.clone() }.encode();
    let head = String::from_utf8(head).map_err(|_| "the head is not UTF-8".to_owned())?;
    let (encoding, body) = body::encode(message.payload);
    let outgoing = Outgoing { to, is_addressed, group, deduplication, head: carried(head.trim_end()), encoding, body };
    at_most("the message, with its head,", outgoing.bytes(), MESSAGE_BYTES_MAX)?;
    Ok(outgoing)
}

/// Messages with one tenant, topic and ordering key are in one group. The texts have their lengths before them, so that no two
/// triples make one text.
fn group(message: &Message) -> String {
    let mut hash = Sha256::new();
    for text in [message.tenant.as_str(), &message.topic, &message.key] {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hex(&hash.finalize()[..GROUP_BYTES])
}

/// JSON in which each character that SQS does not carry is escaped. Outside of texts JSON has none.
fn carried(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for char in json.chars() {
        if is_carried(char) {
            text.push(char);
        } else {
            _ = write!(text, "\\u{:04x}", u32::from(char));
        }
    }
    text
}

/// Reads a message from its attributes and its body.
///
/// # Errors
/// Says in one sentence what is missing or wrong, and returns the attributes and the body as they arrived.
pub(crate) fn decode(
    attributes: &BTreeMap<String, String>,
    body: &str,
    payload_bytes_max: usize,
) -> Result<Message, Unreadable> {
    read(attributes, body, payload_bytes_max).map_err(|problem| Unreadable {
        problem,
        id: attributes.get(HEAD).and_then(|head| id_of(head)),
        headers: attributes.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        payload: body.as_bytes().to_vec(),
    })
}

fn read(attributes: &BTreeMap<String, String>, body: &str, payload_bytes_max: usize) -> Result<Message, String> {
    let head = attributes.get(HEAD).ok_or_else(|| format!("the message attribute {HEAD} is missing"))?;
    let mut bytes = head.replace('\n', " ").into_bytes();
    bytes.push(b'\n');
    let message =
        Message::decode(&bytes).map_err(|problem| format!("the message attribute {HEAD} is wrong: {problem}"))?;
    check(&message)?;
    if message.topic.is_empty() {
        return Err("the topic is empty".to_owned());
    }
    let payload = body::decode(attributes.get(ENCODING).map(String::as_str), body)?;
    at_most("the payload", payload.len(), payload_bytes_max)?;
    Ok(Message { payload, ..message })
}

/// The limits of the texts.
fn check(message: &Message) -> Result<(), String> {
    at_most("the event type", message.event_type.len(), TEXT_BYTES_MAX)?;
    at_most("the ordering key", message.key.len(), TEXT_BYTES_MAX)?;
    for (name, value) in message.headers.pairs() {
        at_most(&format!("the header {name}"), value.len(), Headers::bytes_max(name, TEXT_BYTES_MAX))?;
    }
    if message.event_type.is_empty() {
        return Err("the event type is empty".to_owned());
    }
    Ok(())
}

/// The id in a head that is wrong elsewhere.
fn id_of(head: &str) -> Option<MessageId> {
    let head: serde_json::Value = serde_json::from_str(head).ok()?;
    Uuid::parse_str(head.get("id")?.as_str()?).ok().map(MessageId)
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
