//! How a message looks in Kafka: the one table of keys and headers, as `docs/wire.md` describes it.

use saga_core::key::Tenant;
use saga_core::store::{MessageId, Timestamp};
use saga_core::transport::{Headers, Message, MessageKind, Unreadable};
use uuid::Uuid;

use crate::names::Names;
use crate::wire::debezium;
use crate::wire::parts::{
    COMMITTED_AT, MESSAGE_ID, TEXT_BYTES_MAX, TYPE, parse_id, parse_kind, parse_tenant, parse_type, recorded_at, topic,
};
use crate::wire::record::Record;
use crate::wire::text::{at_most, short};

/// The header with the kind; without it a message is an event.
pub(crate) const KIND: &str = "saga-kind";
/// The header with the ordering key.
pub(crate) const KEY: &str = "saga-key";
/// The header with the tenant.
pub(crate) const TENANT: &str = "saga-tenant";
/// The header for receivers that know nothing of this project: what to tell duplicates by.
const IDEMPOTENCY_KEY: &str = "x-idempotency-key";
const CONTENT_TYPE: &str = "content-type";
const JSON: &str = "application/json";

/// What all of a message but its payload has at most, in bytes: its texts, their names, and what Kafka adds.
pub(crate) const HEAD_BYTES_MAX: usize = 18 * TEXT_BYTES_MAX;

/// A message as it is handed to the broker.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// The Kafka topic.
    pub(crate) topic: String,
    /// Whether it is for one service. A message to a service that never subscribed is refused.
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
    let idempotency_key = message.idempotency_key();
    let id = message.id.to_string();
    let mut headers = vec![(MESSAGE_ID, id), (TYPE, message.event_type)];
    if message.kind != MessageKind::Event {
        headers.push((KIND, message.kind.as_str().to_owned()));
    }
    for (name, value) in message.headers.pairs() {
        at_most(&format!("the header {name}"), value.len(), Headers::bytes_max(name, TEXT_BYTES_MAX))?;
        headers.push((name, value));
    }
    let key = record_key(&message.tenant, &message.key);
    headers.push((KEY, message.key));
    if !message.tenant.is_default() {
        headers.push((TENANT, message.tenant.as_str().to_owned()));
    }
    headers.push((COMMITTED_AT, message.committed_at.0.to_string()));
    headers.push((CONTENT_TYPE, JSON.to_owned()));
    headers.push((IDEMPOTENCY_KEY, idempotency_key));
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
            at_most(&format!("the header {name}"), value.len(), Headers::bytes_max(name, TEXT_BYTES_MAX))?;
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

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
