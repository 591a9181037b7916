//! How a message looks on the wire: the one table of properties and headers, as `docs/wire.md` describes it.

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use saga_core::key::Tenant;
use saga_core::store::{MessageId, Timestamp};
use saga_core::transport::Message;

use crate::names::TOPIC_BYTES_MAX;

/// The header with the ordering key.
pub(crate) const KEY: &str = "saga-key";
/// The header with the tenant.
pub(crate) const TENANT: &str = "saga-tenant";
/// The header with the moment of the commit, in microseconds since 1970.
pub(crate) const COMMITTED_AT: &str = "saga-committed-at";
/// The header for receivers that know nothing of this project: what to tell duplicates by.
pub(crate) const IDEMPOTENCY_KEY: &str = "x-idempotency-key";

/// The longest event type, in bytes: it is the property `type`, which AMQP ends there.
const EVENT_TYPE_BYTES_MAX: usize = 255;
/// The longest ordering key, in bytes: all headers have to fit into one frame.
const KEY_BYTES_MAX: usize = 4096;
const CONTENT_TYPE: &str = "application/json";
const PERSISTENT: u8 = 2;
const MICROS: i64 = 1_000_000;

/// A message as it is handed to the broker.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) routing_key: ShortString,
    pub(crate) properties: BasicProperties,
    pub(crate) payload: Vec<u8>,
}

/// Writes a message down.
///
/// # Errors
/// Says which part of the message AMQP cannot carry.
pub(crate) fn encode(message: Message, payload_bytes_max: usize) -> Result<Outgoing, String> {
    at_most("the topic", message.topic.len(), TOPIC_BYTES_MAX)?;
    at_most("the event type", message.event_type.len(), EVENT_TYPE_BYTES_MAX)?;
    at_most("the ordering key", message.key.len(), KEY_BYTES_MAX)?;
    at_most("the payload", message.payload.len(), payload_bytes_max)?;
    if message.event_type.is_empty() {
        return Err("the event type is empty".to_owned());
    }
    let id = message.id.to_string();
    let mut headers = FieldTable::default();
    headers.insert(KEY.into(), text(&message.key));
    if !message.tenant.is_default() {
        headers.insert(TENANT.into(), text(message.tenant.as_str()));
    }
    headers.insert(COMMITTED_AT.into(), AMQPValue::LongLongInt(message.committed_at.0));
    headers.insert(IDEMPOTENCY_KEY.into(), text(&id));
    let mut properties = BasicProperties::default()
        .with_message_id(id.into())
        .with_type(message.event_type.into())
        .with_content_type(CONTENT_TYPE.into())
        .with_delivery_mode(PERSISTENT)
        .with_headers(headers);
    if let Ok(seconds) = u64::try_from(message.committed_at.0.div_euclid(MICROS)) {
        properties = properties.with_timestamp(seconds);
    }
    Ok(Outgoing { routing_key: message.topic.into(), properties, payload: message.payload })
}

/// Reads a message. It takes the content when the rest is good, and leaves it where it is otherwise.
///
/// # Errors
/// Says what is missing or wrong, in one sentence.
pub(crate) fn decode(
    routing_key: &str,
    properties: &BasicProperties,
    payload: &mut Vec<u8>,
    payload_bytes_max: usize,
) -> Result<Message, String> {
    at_most("the body", payload.len(), payload_bytes_max)?;
    let headers = Headers(properties.headers().as_ref());
    if let Some(encoding) = properties.content_encoding().as_ref().map(ShortString::as_str)
        && !["", "identity", "utf-8", "UTF-8"].contains(&encoding)
    {
        return Err(format!("the property content-encoding is {encoding:?}, and only plain content is understood"));
    }
    let id = properties.message_id().as_ref().ok_or("the property message-id is missing")?;
    let id =
        id.as_str().parse().map_err(|_| format!("the property message-id is {:?}, and no UUID", short(id.as_str())))?;
    let event_type = properties.kind().as_ref().map(ShortString::as_str).unwrap_or_default();
    if event_type.is_empty() {
        return Err("the property type is missing: it is the event's name".to_owned());
    }
    let key = headers.text(KEY)?.ok_or_else(|| format!("the header {KEY} is missing"))?;
    at_most("the header saga-key", key.len(), KEY_BYTES_MAX)?;
    let tenant = Tenant::from_stored(headers.text(TENANT)?.unwrap_or_default())
        .map_err(|problem| format!("the header {TENANT} is wrong: {problem}"))?;
    let committed_at = committed_at(&headers, properties)?;
    Ok(Message {
        id: MessageId(id),
        tenant,
        topic: routing_key.to_owned(),
        key: key.to_owned(),
        event_type: event_type.to_owned(),
        payload: std::mem::take(payload),
        committed_at,
    })
}

/// The header, or, of clients that know seconds only, the property `timestamp`.
fn committed_at(headers: &Headers<'_>, properties: &BasicProperties) -> Result<Timestamp, String> {
    if let Some(micros) = headers.integer(COMMITTED_AT)? {
        return Ok(Timestamp(micros));
    }
    let seconds = properties
        .timestamp()
        .ok_or_else(|| format!("the header {COMMITTED_AT} is missing, and so is the property timestamp"))?;
    let micros = i64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(MICROS));
    micros.map(Timestamp).ok_or_else(|| format!("the property timestamp is {seconds}, which are no seconds since 1970"))
}

/// Headers that came from outside: every value may be of any kind.
struct Headers<'a>(Option<&'a FieldTable>);

impl<'a> Headers<'a> {
    fn get(&self, name: &str) -> Option<&'a AMQPValue> {
        self.0.and_then(|headers| headers.inner().get(name)).filter(|value| !matches!(value, AMQPValue::Void))
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let bytes = match value {
            AMQPValue::LongString(text) => text.as_bytes(),
            AMQPValue::ShortString(text) => text.as_str().as_bytes(),
            AMQPValue::ByteArray(bytes) => bytes.as_slice(),
            other => return Err(format!("the header {name} is of the type {:?}, and no string", other.get_type())),
        };
        let text = std::str::from_utf8(bytes).map_err(|_| format!("the header {name} is not UTF-8"))?;
        Ok(Some(text))
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let integer = match value {
            AMQPValue::ShortShortInt(value) => i64::from(*value),
            AMQPValue::ShortShortUInt(value) => i64::from(*value),
            AMQPValue::ShortInt(value) => i64::from(*value),
            AMQPValue::ShortUInt(value) => i64::from(*value),
            AMQPValue::LongInt(value) => i64::from(*value),
            AMQPValue::LongUInt(value) => i64::from(*value),
            AMQPValue::LongLongInt(value) => *value,
            other => return Err(format!("the header {name} is of the type {:?}, and no integer", other.get_type())),
        };
        Ok(Some(integer))
    }
}

pub(crate) fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(LongString::from(value))
}

fn at_most(what: &str, bytes: usize, bytes_max: usize) -> Result<(), String> {
    if bytes > bytes_max { Err(format!("{what} has {bytes} bytes; at most {bytes_max} are allowed")) } else { Ok(()) }
}

/// The beginning of a text from outside, so that a sentence stays one.
fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
