//! The duty of keeping what leaves this service until it was sent.

use std::time::Duration;

use async_trait::async_trait;

use super::{Headers, Lease, Message, MessageId, MessageKind, NewDeadLetter, NewMessage, StoreError, Timestamp};
use crate::key::Tenant;

/// How many lanes the outbox has.
pub const LANES: u8 = 64;

/// The lane of an ordering key: the same in every process and every version.
///
/// The hash is FNV-1a (Fowler, Noll and Vo), chosen because it is short enough to be written again in SQL.
pub fn lane_of(tenant: &Tenant, aggregate_type: &str, aggregate_id: &str) -> u8 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in [tenant.as_str(), aggregate_type, aggregate_id] {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    // The high bits depend on every byte of the text.
    (hash >> 58) as u8
}

/// A lane that a relay may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeasedLane {
    /// The lane.
    pub lane: u8,
    /// The number that fences off an older owner.
    pub epoch: u64,
}

/// A message that waits to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRow {
    /// The same however often it is sent.
    pub id: MessageId,
    /// What it is.
    pub kind: MessageKind,
    /// Whose it is.
    pub tenant: Tenant,
    /// What it is about.
    pub aggregate_type: String,
    /// Of which of them it speaks: the ordering key.
    pub aggregate_id: String,
    /// The event's name.
    pub event_type: String,
    /// The encoded event.
    pub payload: Vec<u8>,
    /// Its place among the messages of its ordering key.
    pub position: u64,
    /// When it was committed.
    pub committed_at: Timestamp,
    /// What else travels with it.
    pub headers: Headers,
    /// How often it was tried in vain, as it is written down with its parked key.
    pub attempts: u32,
}

impl From<OutboxRow> for Message {
    fn from(row: OutboxRow) -> Self {
        Self {
            id: row.id,
            kind: row.kind,
            tenant: row.tenant,
            topic: row.aggregate_type,
            key: row.aggregate_id,
            event_type: row.event_type,
            payload: row.payload,
            committed_at: row.committed_at,
            headers: row.headers,
        }
    }
}

impl OutboxRow {
    /// A message as it waits from its commit on.
    pub fn committed(new: NewMessage, at: Timestamp) -> Self {
        Self {
            id: new.id,
            kind: new.kind,
            tenant: new.tenant,
            aggregate_type: new.aggregate_type,
            aggregate_id: new.aggregate_id,
            event_type: new.event_type,
            payload: new.payload,
            position: new.position,
            committed_at: at,
            headers: new.headers,
            attempts: 0,
        }
    }
}

/// An ordering key to park, by its next message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewParked {
    /// The message that could not be sent.
    pub message: MessageId,
    /// How often it was tried.
    pub attempts: u32,
    /// What the last attempt said.
    pub error: String,
    /// After how long the key is read again; not before it is released, where this is not set.
    pub retry_in: Option<Duration>,
}

/// An ordering key whose next message could not be sent. It holds up itself only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedKey {
    /// Whose it is.
    pub tenant: Tenant,
    /// What the messages are about.
    pub aggregate_type: String,
    /// The ordering key.
    pub aggregate_id: String,
    /// The message that could not be sent.
    pub message: MessageId,
    /// How often it was tried.
    pub attempts: u32,
    /// What the last attempt said.
    pub error: String,
    /// Since when.
    pub since: Timestamp,
    /// When it is tried again by itself; never, where this is not set.
    pub retry_at: Option<Timestamp>,
}

impl ParkedKey {
    /// The ordering key of a message that could not be sent.
    pub fn new(row: &OutboxRow, parked: &NewParked, since: Timestamp, retry_at: Option<Timestamp>) -> Self {
        Self {
            tenant: row.tenant.clone(),
            aggregate_type: row.aggregate_type.clone(),
            aggregate_id: row.aggregate_id.clone(),
            message: parked.message,
            attempts: parked.attempts,
            error: parked.error.clone(),
            since,
            retry_at,
        }
    }
}

/// How much waits to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutboxDepth {
    /// Rows.
    pub rows: u64,
    /// How long ago the oldest of them was committed.
    pub oldest_age: Option<Duration>,
    /// Ordering keys that are parked, whether or not they are tried again.
    pub parked: u64,
}

/// Keeping what leaves this service until it was sent.
///
/// # Contract
/// - `S-OUT-1` [`lease_lanes`](Outbox::lease_lanes) gives free lanes that have a row to send, each to one owner, with the next epoch; a lane is free like a work row is. A lane that the same owner leased before, and did not free, is given to it again, with the next epoch: it may not know of it.
/// - `S-OUT-2` [`read_lane`](Outbox::read_lane) returns rows of that lane by position within each ordering key, none of a parked key, and none of a lane whose epoch has moved.
/// - `S-OUT-3` [`sent`](Outbox::sent) deletes; a row is never updated.
/// - `S-OUT-4` [`park`](Outbox::park) takes ordering keys out of the reads, for good or for a time, and writes the attempts and the error down; [`parked`](Outbox::parked) lists them also after that time, until the message was sent. [`release`](Outbox::release) puts a key back.
/// - `S-OUT-6` [`discard`](Outbox::discard) deletes the message that could not be sent, puts its key back, and keeps, in the same commit, the letter that it is given with the message's content, discarded with that note. Where the message's key is not parked it changes nothing.
/// - `S-OUT-5` A message whose id waits in the outbox already is not inserted again: that is no miss and no error, the row that waits stays as it is, and the rest of its changes is written.
/// - `S-OUT-7` A message that is due later is read from no lane before that, and gives its lane nothing to send; it holds up no other. [`sent`](Outbox::sent) deletes it also before it is due.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Leases lanes that have something to send.
    async fn lease_lanes(&self, lease: Lease, limit: usize) -> Result<Vec<LeasedLane>, StoreError>;

    /// Lengthens the leases; answers in the order of the request whether each lane is still held.
    async fn renew_lanes(&self, lanes: &[LeasedLane], lease: Lease) -> Result<Vec<bool>, StoreError>;

    /// Frees lanes.
    async fn release_lanes(&self, lanes: &[LeasedLane]) -> Result<(), StoreError>;

    /// What waits in a lane: at most `limit` rows.
    async fn read_lane(&self, lane: LeasedLane, limit: usize) -> Result<Vec<OutboxRow>, StoreError>;

    /// What waits in these lanes: at most `limit` rows in all. The rows of an ordering key, which all lie in one lane, come
    /// as [`read_lane`](Self::read_lane) answers them. A store to which each call is a round trip reads all lanes in one.
    async fn read_lanes(&self, lanes: &[LeasedLane], limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        let mut rows = Vec::new();
        for lane in lanes {
            if rows.len() < limit {
                rows.extend(self.read_lane(*lane, limit - rows.len()).await?);
            }
        }
        Ok(rows)
    }

    /// Deletes what was confirmed.
    async fn sent(&self, messages: &[MessageId]) -> Result<(), StoreError>;

    /// Parks ordering keys: of each key at most one message is named. What is not in the outbox any more is left out.
    async fn park(&self, parked: &[NewParked]) -> Result<(), StoreError>;

    /// The parked keys of every tenant: at most `limit`.
    async fn parked(&self, limit: usize) -> Result<Vec<ParkedKey>, StoreError>;

    /// Lets the key of this message try again; answers whether it was parked.
    async fn release(&self, message: MessageId) -> Result<bool, StoreError>;

    /// Deletes this message of a parked key, keeps the letter, and lets the key go on; answers whether it was parked.
    async fn discard(&self, message: MessageId, letter: &NewDeadLetter, note: &str) -> Result<bool, StoreError>;

    /// Whether nothing waits at all. It is asked at each poll, so a store answers it without counting what waits.
    async fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.depth().await?.rows == 0)
    }

    /// How much waits.
    async fn depth(&self) -> Result<OutboxDepth, StoreError>;
}
