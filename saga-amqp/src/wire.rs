//! How a message looks on the wire: the one table of properties and headers, as `docs/wire.md` describes it.

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use saga_core::key::Tenant;
use saga_core::store::{MessageId, Timestamp};
use saga_core::transport::{Headers, Message, MessageKind, Unreadable};
use uuid::Uuid;

use crate::names::TOPIC_BYTES_MAX;

/// The header with the kind; without it a message is an event.
pub(crate) const KIND: &str = "saga-kind";
/// The header with the ordering key.
pub(crate) const KEY: &str = "saga-key";
/// The header with the tenant.
pub(crate) const TENANT: &str = "saga-tenant";
/// The header with the moment of the commit, in microseconds since 1970.
pub(crate) const COMMITTED_AT: &str = "saga-committed-at";
/// The header for receivers that know nothing of this project: what to tell duplicates by.
pub(crate) const IDEMPOTENCY_KEY: &str = "x-idempotency-key";

/// The longest event type, in bytes: it is the property `type`, which AMQP ends there.
const EVENT_TYPE_BYTES_MAX: usize = PROPERTY_BYTES_MAX;
/// The longest ordering key, in bytes: all headers have to fit into one frame.
const KEY_BYTES_MAX: usize = 4096;
/// The longest text of any other header that a message has, in bytes, for the same reason.
const HEADER_BYTES_MAX: usize = 4096;
/// The longest property, in bytes: AMQP ends it there.
const PROPERTY_BYTES_MAX: usize = 255;
/// The headers of which a property is the usual place: it is written too, and read where the header is absent.
const REPLY_TO: &str = "saga-reply-to";
const CORRELATION: &str = "saga-correlation";
/// What a quorum queue adds to a message; it changes from delivery to delivery.
const COUNTS: [&str; 2] = ["x-delivery-count", "x-acquired-count"];
const CONTENT_TYPE: &str = "application/json";
const PERSISTENT: u8 = 2;
const MICROS: i64 = 1_000_000;

/// A message as it is handed to the broker.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Whether it is an error when no queue takes it: it is for one receiver, who is known to be there.
    pub(crate) is_addressed: bool,
    pub(crate) routing_key: ShortString,
    pub(crate) properties: BasicProperties,
    pub(crate) payload: Vec<u8>,
}

/// Writes a message down, as one of this user.
///
/// # Errors
/// Says which part of the message AMQP cannot carry.
pub(crate) fn encode(
    message: Message,
    payload_bytes_max: usize,
    user: Option<&ShortString>,
) -> Result<Outgoing, String> {
    at_most("the topic", message.topic.len(), TOPIC_BYTES_MAX)?;
    at_most("the event type", message.event_type.len(), EVENT_TYPE_BYTES_MAX)?;
    at_most("the ordering key", message.key.len(), KEY_BYTES_MAX)?;
    at_most("the payload", message.payload.len(), payload_bytes_max)?;
    if message.event_type.is_empty() {
        return Err("the event type is empty".to_owned());
    }
    let (id, idempotency_key) = (message.id.to_string(), message.idempotency_key());
    let mut headers = FieldTable::default();
    if message.kind != MessageKind::Event {
        headers.insert(KIND.into(), text(message.kind.as_str()));
    }
    for (name, value) in message.headers.pairs() {
        at_most(&format!("the header {name}"), value.len(), Headers::bytes_max(name, HEADER_BYTES_MAX))?;
        headers.insert(name.into(), text(&value));
    }
    headers.insert(KEY.into(), text(&message.key));
    if !message.tenant.is_default() {
        headers.insert(TENANT.into(), text(message.tenant.as_str()));
    }
    headers.insert(COMMITTED_AT.into(), AMQPValue::LongLongInt(message.committed_at.0));
    headers.insert(IDEMPOTENCY_KEY.into(), text(&idempotency_key));
    let mut properties = BasicProperties::default()
        .with_message_id(id.into())
        .with_type(message.event_type.into())
        .with_content_type(CONTENT_TYPE.into())
        .with_delivery_mode(PERSISTENT)
        .with_headers(headers);
    if let Some(user) = user {
        properties = properties.with_user_id(user.clone());
    }
    if let Ok(seconds) = u64::try_from(message.committed_at.0.div_euclid(MICROS)) {
        properties = properties.with_timestamp(seconds);
    }
    if let Some(correlation) = message.headers.correlation {
        properties = properties.with_correlation_id(correlation.to_string().into());
    }
    if let Some(reply_to) = message.headers.reply_to.filter(|reply_to| reply_to.len() <= PROPERTY_BYTES_MAX) {
        properties = properties.with_reply_to(reply_to.into());
    }
    let is_addressed = message.kind != MessageKind::Event;
    Ok(Outgoing { is_addressed, routing_key: message.topic.into(), properties, payload: message.payload })
}

/// Reads a message with this topic.
///
/// # Errors
/// Says in one sentence what is missing or wrong, and returns the headers and the content as they arrived.
pub(crate) fn decode(
    topic: &str,
    properties: &BasicProperties,
    payload: Vec<u8>,
    payload_bytes_max: usize,
) -> Result<Message, Unreadable> {
    match at_most("the body", payload.len(), payload_bytes_max).and_then(|()| head(topic, properties)) {
        Ok(head) => Ok(Message { payload, ..head }),
        Err(problem) => {
            let id = properties.message_id().as_ref().and_then(|id| Uuid::parse_str(id.as_str()).ok());
            Err(Unreadable { problem, id: id.map(MessageId), headers: shown(properties), payload })
        }
    }
}

/// A message without its content.
fn head(topic: &str, properties: &BasicProperties) -> Result<Message, String> {
    let headers = Table(properties.headers().as_ref());
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
        return Err("the property type is missing: it is the name of the event or of the step".to_owned());
    }
    let key = headers.text(KEY)?.ok_or_else(|| format!("the header {KEY} is missing"))?;
    at_most("the header saga-key", key.len(), KEY_BYTES_MAX)?;
    let tenant = Tenant::from_stored(headers.text(TENANT)?.unwrap_or_default())
        .map_err(|problem| format!("the header {TENANT} is wrong: {problem}"))?;
    let committed_at = committed_at(&headers, properties)?;
    let kind = match headers.text(KIND)? {
        None => MessageKind::Event,
        Some(name) => MessageKind::parse(name).ok_or_else(|| {
            format!("the header {KIND} is {:?}, and none of event, command, undo, reply, fact and report", short(name))
        })?,
    };
    Ok(Message {
        tenant,
        key: key.to_owned(),
        event_type: event_type.to_owned(),
        committed_at,
        headers: own_headers(kind, &headers, properties)?,
        ..Message::new(MessageId(id), kind, topic)
    })
}

/// The headers that every transport has. What a stranger's event says in a property that only a command or a reply needs
/// is not looked at.
fn own_headers(kind: MessageKind, headers: &Table<'_>, properties: &BasicProperties) -> Result<Headers, String> {
    let mut pairs = Vec::new();
    for name in Headers::NAMES {
        if let Some(value) = headers.text(name)? {
            at_most(&format!("the header {name}"), value.len(), Headers::bytes_max(name, HEADER_BYTES_MAX))?;
            pairs.push((name, value));
        }
    }
    let has = |name: &str| pairs.iter().any(|(there, _)| *there == name);
    let stand_in = match kind {
        MessageKind::Event | MessageKind::Fact | MessageKind::Closed => None,
        MessageKind::Command | MessageKind::Undo => Some((REPLY_TO, properties.reply_to())),
        MessageKind::Reply | MessageKind::Report => Some((CORRELATION, properties.correlation_id())),
    };
    if let Some((name, Some(value))) = stand_in
        && !has(name)
    {
        pairs.push((name, value.as_str()));
    }
    Headers::read(pairs)
}

/// What stands beside the content of what is no message, as far as it is text or a number.
fn shown(properties: &BasicProperties) -> Vec<(String, String)> {
    let texts = [
        ("message-id", properties.message_id()),
        ("type", properties.kind()),
        ("correlation-id", properties.correlation_id()),
        ("reply-to", properties.reply_to()),
        ("content-type", properties.content_type()),
        ("content-encoding", properties.content_encoding()),
        ("app-id", properties.app_id()),
        ("user-id", properties.user_id()),
    ];
    let text = |(name, value): (&str, &Option<ShortString>)| Some((name.to_owned(), value.as_ref()?.to_string()));
    let mut shown: Vec<(String, String)> = texts.into_iter().filter_map(text).collect();
    shown.extend(properties.timestamp().map(|seconds| ("timestamp".to_owned(), seconds.to_string())));
    let headers = Table(properties.headers().as_ref());
    for name in headers.0.iter().flat_map(|headers| headers.inner().keys()).map(ShortString::as_str) {
        let text = headers.text(name).ok().flatten().map(str::to_owned);
        let value = text.or_else(|| headers.integer(name).ok().flatten().map(|integer| integer.to_string()));
        shown.extend(value.filter(|_| !COUNTS.contains(&name)).map(|value| (name.to_owned(), value)));
    }
    shown
}

/// The header, or, of clients that know seconds only, the property `timestamp`.
fn committed_at(headers: &Table<'_>, properties: &BasicProperties) -> Result<Timestamp, String> {
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
struct Table<'a>(Option<&'a FieldTable>);

impl<'a> Table<'a> {
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

fn text(value: &str) -> AMQPValue {
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
