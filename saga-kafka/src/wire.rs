//! How a message looks in Kafka: the one table of keys and headers, as `docs/wire.md` describes it.

use saga_core::key::Tenant;
use saga_core::store::{MessageId, Timestamp};
use saga_core::transport::{Headers, Message, MessageKind, Unreadable};
use uuid::Uuid;

use crate::debezium;
use crate::names::Names;
use crate::record::Record;

/// The header with the message id.
pub(crate) const MESSAGE_ID: &str = "message-id";
/// The header with the event type.
pub(crate) const TYPE: &str = "type";
/// The header with the kind; without it a message is an event.
pub(crate) const KIND: &str = "saga-kind";
/// The header with the ordering key.
pub(crate) const KEY: &str = "saga-key";
/// The header with the tenant.
pub(crate) const TENANT: &str = "saga-tenant";
/// The header with the moment of the commit, in microseconds since 1970.
pub(crate) const COMMITTED_AT: &str = "saga-committed-at";
/// The header for receivers that know nothing of this project: what to tell duplicates by.
const IDEMPOTENCY_KEY: &str = "x-idempotency-key";
const CONTENT_TYPE: &str = "content-type";
const JSON: &str = "application/json";

/// The longest topic, event type and ordering key, and the longest of all other headers, in bytes. So a payload of the longest
/// length fits into a message with all of them.
const TEXT_BYTES_MAX: usize = 4096;
/// What all of a message but its payload has at most, in bytes: 16 texts, their names, and what Kafka adds.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * TEXT_BYTES_MAX + 4096;
const MICROS_PER_MILLI: i64 = 1_000;

/// A message as it is handed to the broker.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// The Kafka topic.
    pub(crate) topic: String,
    /// Whether it is for one receiver, who has to be there.
    pub(crate) is_addressed: bool,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
    pub(crate) payload: Option<Vec<u8>>,
}

/// Writes a message down.
///
/// # Errors
/// Says which part of the message cannot be carried.
pub(crate) fn encode(message: Message, names: &Names, payload_bytes_max: usize) -> Result<Outgoing, String> {
    let topic = names.topic(&message.topic)?;
    at_most("the event type", message.event_type.len(), TEXT_BYTES_MAX)?;
    at_most("the ordering key", message.key.len(), TEXT_BYTES_MAX)?;
    at_most("the payload", message.payload.len(), payload_bytes_max)?;
    if message.event_type.is_empty() {
        return Err("the event type is empty".to_owned());
    }
    let id = message.id.to_string();
    let mut headers = vec![(MESSAGE_ID, id.clone()), (TYPE, message.event_type)];
    if message.kind != MessageKind::Event {
        headers.push((KIND, message.kind.as_str().to_owned()));
    }
    for (name, value) in message.headers.pairs() {
        at_most(&format!("the header {name}"), value.len(), TEXT_BYTES_MAX)?;
        headers.push((name, value));
    }
    let key = record_key(&message.tenant, &message.key);
    headers.push((KEY, message.key));
    if !message.tenant.is_default() {
        headers.push((TENANT, message.tenant.as_str().to_owned()));
    }
    headers.push((COMMITTED_AT, message.committed_at.0.to_string()));
    headers.push((CONTENT_TYPE, JSON.to_owned()));
    headers.push((IDEMPOTENCY_KEY, id));
    let bytes = |(name, value): (&str, String)| (name.to_owned(), Some(value.into_bytes()));
    Ok(Outgoing {
        topic,
        is_addressed: message.kind != MessageKind::Event,
        key: Some(key),
        headers: headers.into_iter().map(bytes).collect(),
        payload: Some(message.payload),
    })
}

/// The record key: messages with one tenant and one ordering key are in one partition.
fn record_key(tenant: &Tenant, key: &str) -> Vec<u8> {
    if tenant.is_default() { key.as_bytes().to_vec() } else { format!("{}/{key}", tenant.as_str()).into_bytes() }
}

/// Reads a message.
///
/// # Errors
/// Says in one sentence what is missing or wrong, and returns the headers and the content as they arrived.
pub(crate) fn decode(record: &Record, names: &Names, payload_bytes_max: usize) -> Result<Message, Unreadable> {
    let payload = record.payload.clone().unwrap_or_default();
    match at_most("the value", payload.len(), payload_bytes_max).and_then(|()| head(record, names)) {
        Ok(head) => Ok(Message { payload, ..head }),
        Err(problem) => {
            let id = [MESSAGE_ID, debezium::ID].into_iter().find_map(|name| record.text(name).ok().flatten());
            let id = id.and_then(|id| Uuid::parse_str(id).ok()).map(MessageId);
            Err(Unreadable { problem, id, headers: record.shown(), payload })
        }
    }
}

/// A message without its content.
fn head(record: &Record, names: &Names) -> Result<Message, String> {
    if debezium::is_of_connector(record) {
        return debezium::head(record, names);
    }
    let text = |name: &'static str| record.text(name);
    let id = text(MESSAGE_ID)?.ok_or_else(|| format!("the header {MESSAGE_ID} is missing"))?;
    let kind = match text(KIND)? {
        None => MessageKind::Event,
        Some(name) => parse_kind(KIND, name)?,
    };
    let key = text(KEY)?.ok_or_else(|| format!("the header {KEY} is missing"))?;
    at_most("the header saga-key", key.len(), TEXT_BYTES_MAX)?;
    let mut pairs = Vec::new();
    for name in Headers::NAMES {
        if let Some(value) = text(name)? {
            at_most(&format!("the header {name}"), value.len(), TEXT_BYTES_MAX)?;
            pairs.push((name, value));
        }
    }
    let committed_at = match text(COMMITTED_AT)? {
        Some(micros) => micros
            .parse()
            .map(Timestamp)
            .map_err(|_| format!("the header {COMMITTED_AT} is {:?}, and no integer", short(micros)))?,
        None => recorded_at(record)?,
    };
    Ok(Message {
        tenant: parse_tenant(TENANT, text(TENANT)?.unwrap_or_default())?,
        key: key.to_owned(),
        event_type: parse_type(text(TYPE)?)?,
        committed_at,
        headers: Headers::read(pairs)?,
        ..Message::new(parse_id(MESSAGE_ID, id)?, kind, topic(record, names, kind)?)
    })
}

/// The topic of a message, which its Kafka topic tells.
pub(crate) fn topic(record: &Record, names: &Names, kind: MessageKind) -> Result<String, String> {
    let topic = names.read(&record.topic, kind);
    topic.ok_or_else(|| format!("the topic {:?} is none of this prefix", short(&record.topic)))
}

/// When the record was made: for senders that do not say when it was committed.
pub(crate) fn recorded_at(record: &Record) -> Result<Timestamp, String> {
    let micros = record.timestamp.and_then(|millis| millis.checked_mul(MICROS_PER_MILLI));
    micros
        .map(Timestamp)
        .ok_or_else(|| format!("the header {COMMITTED_AT} is missing, and so is the record's timestamp"))
}

pub(crate) fn parse_id(name: &str, id: &str) -> Result<MessageId, String> {
    Uuid::parse_str(id).map(MessageId).map_err(|_| format!("the header {name} is {:?}, and no UUID", short(id)))
}

pub(crate) fn parse_kind(name: &str, kind: &str) -> Result<MessageKind, String> {
    MessageKind::parse(kind).ok_or_else(|| {
        let kind = short(kind);
        format!("the header {name} is {kind:?}, and none of event, command, undo, reply, fact, report and closed")
    })
}

pub(crate) fn parse_type(event_type: Option<&str>) -> Result<String, String> {
    let event_type = event_type.unwrap_or_default();
    if event_type.is_empty() {
        return Err(format!("the header {TYPE} is missing: it is the name of the event or of the step"));
    }
    at_most("the header type", event_type.len(), TEXT_BYTES_MAX)?;
    Ok(event_type.to_owned())
}

pub(crate) fn parse_tenant(name: &str, tenant: &str) -> Result<Tenant, String> {
    Tenant::from_stored(tenant).map_err(|problem| format!("the header {name} is wrong: {problem}"))
}

pub(crate) fn at_most(what: &str, bytes: usize, bytes_max: usize) -> Result<(), String> {
    if bytes > bytes_max { Err(format!("{what} has {bytes} bytes; at most {bytes_max} are allowed")) } else { Ok(()) }
}

/// The beginning of a text from outside, so that a sentence stays one.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
