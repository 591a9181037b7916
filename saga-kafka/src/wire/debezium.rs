//! What Debezium's event router writes from the outbox table, as `docs/cdc.md` configures it.

use saga_core::store::Timestamp;
use saga_core::transport::{Headers, Message};

use crate::names::Names;
use crate::wire::parts::{MESSAGE_ID, TYPE, parse_id, parse_kind, parse_tenant, parse_type, recorded_at, topic};
use crate::wire::record::Record;
use crate::wire::text::short;

/// The header with the message id.
pub(crate) const ID: &str = "id";
const TENANT: &str = "tenant";
const KIND: &str = "kind";
/// The header with all other headers, as one JSON object.
const HEADERS: &str = "headers";
/// The header with the moment of the commit, as Debezium writes those of PostgreSQL.
const COMMITTED_AT: &str = "committed_at";

/// Whether the connector wrote the record: its header with the id has another name.
pub(crate) fn is_of_connector(record: &Record) -> bool {
    let has = |name: &str| record.headers.iter().any(|(there, _)| there == name);
    has(ID) && !has(MESSAGE_ID)
}

/// A message without its content.
pub(crate) fn head(record: &Record, names: &Names) -> Result<Message, String> {
    let text = |name: &'static str| record.text(name)?.ok_or_else(|| format!("the header {name} is missing"));
    let key = std::str::from_utf8(record.key.as_deref().unwrap_or_default());
    let kind = parse_kind(KIND, text(KIND)?)?;
    let headers = Headers::decode(record.text(HEADERS)?.unwrap_or_default());
    Ok(Message {
        tenant: parse_tenant(TENANT, record.text(TENANT)?.unwrap_or_default())?,
        key: key.map_err(|_| "the record's key is not UTF-8".to_owned())?.to_owned(),
        event_type: parse_type(record.text(TYPE)?)?,
        committed_at: committed_at(record)?,
        headers: headers.map_err(|problem| format!("the header {HEADERS} is wrong: {problem}"))?,
        ..Message::new(parse_id(ID, text(ID)?)?, kind, topic(record, names, kind)?)
    })
}

/// When the message was committed. A connector that does not say it dates the record when it reads the row from the log, which is later.
fn committed_at(record: &Record) -> Result<Timestamp, String> {
    let Some(text) = record.text(COMMITTED_AT)? else { return recorded_at(record) };
    Timestamp::from_rfc3339(text)
        .ok_or_else(|| format!("the header {COMMITTED_AT} is {:?}, and no moment in UTC", short(text)))
}
