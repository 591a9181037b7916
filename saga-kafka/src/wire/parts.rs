//! The parts of a message that every sender writes, by whatever names.

use saga_core::key::Tenant;
use saga_core::store::{MessageId, Timestamp};
use saga_core::transport::MessageKind;
use uuid::Uuid;

use crate::names::Names;
use crate::wire::record::Record;
use crate::wire::text::{at_most, short};

/// The header with the message id.
pub(crate) const MESSAGE_ID: &str = "message-id";
/// The header with the event type.
pub(crate) const TYPE: &str = "type";
/// The header with the moment of the commit, in microseconds since 1970.
pub(crate) const COMMITTED_AT: &str = "saga-committed-at";
/// The longest topic, event type and ordering key, and the longest of all other headers, in bytes. So a payload of the longest
/// length fits into a message with all of them.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;
const MICROS_PER_MILLI: i64 = 1_000;

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
