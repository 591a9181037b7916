//! Messages on their way out of this service.

use std::time::Duration;

use async_trait::async_trait;

use crate::key::Tenant;
use crate::store::{Headers, Lease, Message, MessageId, MessageKind, NewDeadLetter, NewMessage, StoreError, Timestamp};

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
    /// The kind.
    pub kind: MessageKind,
    /// The tenant.
    pub tenant: Tenant,
    /// The aggregate type.
    pub aggregate_type: String,
    /// The ordering key: which one of them the message is about.
    pub aggregate_id: String,
    /// The event's name.
    pub event_type: String,
    /// The encoded event.
    pub payload: Vec<u8>,
    /// Its position among the messages of its ordering key.
    pub position: u64,
    /// When it was committed.
    pub committed_at: Timestamp,
    /// The headers.
    pub headers: Headers,
    /// How many attempts to send it failed, as stored with its parked key.
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
    /// The error of the last attempt.
    pub error: String,
    /// The time until the key is read again. `None` keeps it parked until it is released.
    pub retry_in: Option<Duration>,
}

/// How long the key of a message that cannot be read is parked.
const UNREADABLE_FOR: Duration = Duration::from_mins(1);

impl NewParked {
    /// Parks the key of a message that this version cannot read. It is read again after a minute, since a relay of a newer
    /// version may read it. `attempts` says how often that was in vain before.
    pub fn unreadable(message: MessageId, attempts: u32, problem: &str) -> Self {
        let error = format!("it cannot be read: {problem}");
        Self { message, attempts: attempts.saturating_add(1), error, retry_in: Some(UNREADABLE_FOR) }
    }
}

/// An ordering key whose next message could not be sent. It does not hold up other keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedKey {
    /// The tenant.
    pub tenant: Tenant,
    /// The aggregate type of the messages.
    pub aggregate_type: String,
    /// The ordering key.
    pub aggregate_id: String,
    /// The message that could not be sent.
    pub message: MessageId,
    /// How often it was tried.
    pub attempts: u32,
    /// The error of the last attempt.
    pub error: String,
    /// Since when it is parked.
    pub since: Timestamp,
    /// When it is tried again automatically. `None` is never.
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
    /// How long ago the oldest row was committed.
    pub oldest_age: Option<Duration>,
    /// Ordering keys that are parked, whether or not they are tried again.
    pub parked: u64,
}

/// Keeps messages until they are sent.
///
/// # Contract
/// - `S-OUT-1` [`lease_lanes`](Outbox::lease_lanes) gives free lanes that have a row to send, each to one owner, with the next epoch; a lane is free as a work row is. A lane that the same owner leased before, and did not free, is given to it again with the next epoch, because the owner may not know that it has it.
/// - `S-OUT-2` [`read_lane`](Outbox::read_lane) returns rows of that lane by position within each ordering key, no row of a parked key, and no row of a lane whose epoch has moved. A row that this version cannot read holds up no other key: the store logs its id, and parks its key by [`NewParked::unreadable`].
/// - `S-OUT-3` [`sent`](Outbox::sent) deletes the row; a row is never updated.
/// - `S-OUT-4` [`park`](Outbox::park) takes ordering keys out of the reads, for good or for a time, and stores the attempts and the error. [`parked`](Outbox::parked) lists them, those of one tenant or all, also after that time, until the message is sent. [`release`](Outbox::release) puts a key back.
/// - `S-OUT-6` [`discard`](Outbox::discard) deletes the message that could not be sent, puts its key back, and keeps, in the same commit, the given dead letter with the message's content, discarded with that note. Where the message's key is not parked it changes nothing.
/// - `S-OUT-5` A message whose id already waits in the outbox is not inserted again. That is no miss and no error: the waiting row stays as it is, and the other changes are written.
/// - `S-OUT-7` A message that is due later is not read before that, does not count as something to send in its lane, and holds up no other message. [`sent`](Outbox::sent) deletes it also before it is due.
/// - `S-OUT-8` [`oldest_ages`](Outbox::oldest_ages) knows each message that was not sent: also of parked keys, and those that are due later.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Leases lanes that have something to send.
    async fn lease_lanes(&self, lease: Lease, limit: usize) -> Result<Vec<LeasedLane>, StoreError>;

    /// Extends the leases; answers in the order of the request whether each lane is still held.
    async fn renew_lanes(&self, lanes: &[LeasedLane], lease: Lease) -> Result<Vec<bool>, StoreError>;

    /// Frees lanes.
    async fn release_lanes(&self, lanes: &[LeasedLane]) -> Result<(), StoreError>;

    /// The rows that wait in a lane: at most `limit`.
    async fn read_lane(&self, lane: LeasedLane, limit: usize) -> Result<Vec<OutboxRow>, StoreError>;

    /// The rows that wait in these lanes: at most `limit` in all. The rows of an ordering key, which all lie in one
    /// lane, have the order of [`read_lane`](Self::read_lane). A store to which each call is a round trip reads all
    /// lanes in one.
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

    /// Parks ordering keys, each named by one message. Messages that are no longer in the outbox are ignored.
    async fn park(&self, parked: &[NewParked]) -> Result<(), StoreError>;

    /// The parked keys of one tenant, or of all: at most `limit`.
    async fn parked(&self, tenant: Option<&Tenant>, limit: usize) -> Result<Vec<ParkedKey>, StoreError>;

    /// Lets the relay try the key of this message again; answers whether it was parked.
    async fn release(&self, message: MessageId) -> Result<bool, StoreError>;

    /// Deletes this message of a parked key, keeps the dead letter, and releases the key; answers whether it was
    /// parked.
    async fn discard(&self, message: MessageId, letter: &NewDeadLetter, note: &str) -> Result<bool, StoreError>;

    /// Answers, in the order of the request, for how long the oldest message under the ordering key of each of these waits, or
    /// `None`. They need not wait themselves.
    async fn oldest_ages(&self, messages: &[NewMessage]) -> Result<Vec<Option<Duration>>, StoreError>;

    /// Whether nothing waits. The relay asks at each poll, so a store answers it without counting rows.
    async fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.depth().await?.rows == 0)
    }

    /// How much waits.
    async fn depth(&self) -> Result<OutboxDepth, StoreError>;
}
