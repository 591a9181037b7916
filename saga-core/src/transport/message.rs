use crate::key::Tenant;
use crate::store::{MessageId, OutboxRow, Timestamp};

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The same however often it is sent: receivers tell duplicates by it.
    pub id: MessageId,
    /// Whose it is.
    pub tenant: Tenant,
    /// What it is about.
    pub topic: String,
    /// The ordering key: messages with one key arrive first in the order in which they were committed.
    pub key: String,
    /// The event's name.
    pub event_type: String,
    /// The encoded event.
    pub payload: Vec<u8>,
    /// When it was committed, by the sender's database.
    pub committed_at: Timestamp,
}

impl From<OutboxRow> for Message {
    fn from(row: OutboxRow) -> Self {
        Self {
            id: row.id,
            tenant: row.tenant,
            topic: row.aggregate_type,
            key: row.aggregate_id,
            event_type: row.event_type,
            payload: row.payload,
            committed_at: row.committed_at,
        }
    }
}
