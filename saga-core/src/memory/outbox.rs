use std::collections::{BTreeMap, BTreeSet, VecDeque};

use async_trait::async_trait;

use super::MemoryStore;
use super::clock::Moment;
use super::data::Held;
use crate::key::Tenant;
use crate::store::{
    Lease, LeasedLane, MessageId, NewDeadLetter, NewMessage, NewParked, Outbox, OutboxDepth, OutboxRow, ParkedKey,
    StoreError, Timestamp,
};

pub(super) type OrderingKey = (Tenant, String, String);

/// The rows of the outbox, their lanes, and the keys that are parked.
#[derive(Debug, Default)]
pub(super) struct OutboxData {
    /// By the order of the commits.
    rows: BTreeMap<u64, Entry>,
    numbers: BTreeMap<MessageId, u64>,
    inserted: u64,
    lanes: BTreeMap<u8, Lane>,
    parked: BTreeMap<OrderingKey, ParkedKey>,
    /// How many messages were published under each ordering key.
    published: BTreeMap<OrderingKey, u64>,
}

#[derive(Debug)]
struct Entry {
    row: OutboxRow,
    lane: u8,
    due_at: Timestamp,
}

#[derive(Debug, Default)]
struct Lane {
    epoch: u64,
    lease: Option<Held>,
    rows: BTreeSet<u64>,
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn lease_lanes(&self, lease: Lease, limit: usize) -> Result<Vec<LeasedLane>, StoreError> {
        self.writing("lease_lanes", |data, now| {
            let members = &data.members;
            let has_rows = data.outbox.lanes_with_rows(now);
            let free = data.outbox.lanes.iter_mut().filter(|(number, lane)| {
                let is_own = |held: &Held| held.owner == lease.owner;
                has_rows.contains(number) && lane.lease.is_none_or(|held| is_own(&held) || !members.holds(held, now))
            });
            let take = |(number, lane): (&u8, &mut Lane)| {
                lane.epoch += 1;
                lane.lease = Some(Held::new(lease, now));
                LeasedLane { lane: *number, epoch: lane.epoch }
            };
            Some(Ok(free.take(limit).map(take).collect()))
        })
        .await
    }

    async fn renew_lanes(&self, lanes: &[LeasedLane], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.writing("renew_lanes", |data, now| {
            let renew = |lane: &LeasedLane| {
                let held = data.outbox.held(*lane);
                held.map(|lane| lane.lease = Some(Held::new(lease, now))).is_some()
            };
            Some(Ok(lanes.iter().map(renew).collect()))
        })
        .await
    }

    async fn release_lanes(&self, lanes: &[LeasedLane]) -> Result<(), StoreError> {
        self.writing("release_lanes", |data, _| {
            for lane in lanes {
                if let Some(lane) = data.outbox.held(*lane) {
                    lane.lease = None;
                }
            }
            Some(Ok(()))
        })
        .await
    }

    async fn read_lane(&self, lane: LeasedLane, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        self.reading("read_lane", |data, now| data.outbox.read(lane, limit, now)).await
    }

    async fn sent(&self, messages: &[MessageId]) -> Result<(), StoreError> {
        self.writing("sent", |data, _| {
            for message in messages {
                data.outbox.release(*message);
                data.outbox.delete(*message);
            }
            Some(Ok(()))
        })
        .await
    }

    async fn park(&self, parked: &[NewParked]) -> Result<(), StoreError> {
        self.writing("park", |data, now| {
            for parked in parked {
                data.outbox.park(parked, now);
            }
            Some(Ok(()))
        })
        .await
    }

    async fn parked(&self, limit: usize) -> Result<Vec<ParkedKey>, StoreError> {
        self.reading("parked", |data, _| data.outbox.parked.values().take(limit).cloned().collect()).await
    }

    async fn release(&self, message: MessageId) -> Result<bool, StoreError> {
        self.writing("release", |data, _| Some(Ok(data.outbox.release(message)))).await
    }

    async fn discard(&self, message: MessageId, letter: &NewDeadLetter, note: &str) -> Result<bool, StoreError> {
        self.writing("discard", |data, now| {
            if !data.outbox.release(message) {
                return Some(Ok(false));
            }
            let payload = data.outbox.delete(message).map(|row| row.payload).unwrap_or_default();
            data.letters.keep_discarded(NewDeadLetter { payload, ..letter.clone() }, note, now);
            Some(Ok(true))
        })
        .await
    }

    async fn depth(&self) -> Result<OutboxDepth, StoreError> {
        self.reading("depth", |data, now| OutboxDepth {
            rows: data.outbox.rows.len() as u64,
            oldest_age: data.outbox.rows.values().next().map(|entry| now.since(entry.row.committed_at)),
            parked: data.outbox.parked.len() as u64,
        })
        .await
    }
}

impl OutboxData {
    /// Inserts a message, unless its id waits already.
    pub(super) fn insert(&mut self, new: NewMessage, now: Timestamp) {
        if self.numbers.contains_key(&new.id) {
            return;
        }
        self.inserted += 1;
        let number = self.inserted;
        self.numbers.insert(new.id, number);
        self.lanes.entry(new.lane).or_default().rows.insert(number);
        let row = OutboxRow {
            id: new.id,
            kind: new.kind,
            tenant: new.tenant,
            aggregate_type: new.aggregate_type,
            aggregate_id: new.aggregate_id,
            event_type: new.event_type,
            payload: new.payload,
            position: new.position,
            committed_at: now,
            headers: new.headers,
            attempts: 0,
        };
        self.rows.insert(number, Entry { row, lane: new.lane, due_at: now.plus(new.due_in) });
    }

    /// How many messages were published under this ordering key.
    pub(super) fn published(&self, key: &OrderingKey) -> u64 {
        self.published.get(key).copied().unwrap_or(0)
    }

    /// Inserts a message that counts for its ordering key.
    pub(super) fn publish(&mut self, new: NewMessage, now: Timestamp) {
        let key = (new.tenant.clone(), new.aggregate_type.clone(), new.aggregate_id.clone());
        self.published.insert(key, new.position);
        self.insert(new, now);
    }

    fn held(&mut self, lane: LeasedLane) -> Option<&mut Lane> {
        self.lanes.get_mut(&lane.lane).filter(|held| held.epoch == lane.epoch)
    }

    /// The lanes with a row that is due and whose key is not parked.
    fn lanes_with_rows(&self, now: Timestamp) -> BTreeSet<u8> {
        let has_rows = |lane: &&u8| self.waiting(**lane, now).next().is_some();
        self.lanes.keys().filter(has_rows).copied().collect()
    }

    fn waiting(&self, lane: u8, now: Timestamp) -> impl Iterator<Item = &OutboxRow> {
        let numbers = self.lanes.get(&lane).into_iter().flat_map(|lane| &lane.rows);
        let entries = numbers.filter_map(|number| self.rows.get(number));
        let rows = entries.filter(move |entry| entry.due_at <= now).map(|entry| &entry.row);
        let is_held = move |parked: &ParkedKey| parked.retry_at.is_none_or(|retry_at| retry_at > now);
        rows.filter(move |row| self.parked.is_empty() || !self.parked.get(&ordering_key(row)).is_some_and(is_held))
    }

    /// Each ordering key keeps the places that its rows have in the order of the commits, so that no key is starved,
    /// and fills them by position.
    fn read(&self, lane: LeasedLane, limit: usize, now: Timestamp) -> Vec<OutboxRow> {
        if self.lanes.get(&lane.lane).is_none_or(|held| held.epoch != lane.epoch) {
            return Vec::new();
        }
        let mut by_key: BTreeMap<OrderingKey, Vec<&OutboxRow>> = BTreeMap::new();
        let mut places = Vec::new();
        for row in self.waiting(lane.lane, now) {
            let key = ordering_key(row);
            by_key.entry(key.clone()).or_default().push(row);
            places.push(key);
        }
        let sorted = by_key.into_iter().map(|(key, mut rows)| {
            rows.sort_by_key(|row| row.position);
            (key, VecDeque::from(rows))
        });
        let mut sorted: BTreeMap<OrderingKey, VecDeque<&OutboxRow>> = sorted.collect();
        let next = |key: OrderingKey| {
            let row = sorted.get_mut(&key).and_then(VecDeque::pop_front)?;
            let parked = self.parked.get(&key).filter(|parked| parked.message == row.id);
            Some(OutboxRow { attempts: parked.map_or(0, |parked| parked.attempts), ..row.clone() })
        };
        places.into_iter().take(limit).filter_map(next).collect()
    }

    fn park(&mut self, new: &NewParked, now: Timestamp) {
        let message = new.message;
        let Some(row) = self.numbers.get(&message).and_then(|number| self.rows.get(number)).map(|entry| &entry.row)
        else {
            return;
        };
        let key = ordering_key(row);
        let since = self.parked.get(&key).map_or(now, |parked| parked.since);
        let parked = ParkedKey {
            tenant: row.tenant.clone(),
            aggregate_type: row.aggregate_type.clone(),
            aggregate_id: row.aggregate_id.clone(),
            message,
            attempts: new.attempts,
            error: new.error.clone(),
            since,
            retry_at: new.retry_in.map(|pause| now.plus(pause)),
        };
        self.parked.insert(key, parked);
    }

    fn release(&mut self, message: MessageId) -> bool {
        let parked_before = self.parked.len();
        self.parked.retain(|_, parked| parked.message != message);
        self.parked.len() != parked_before
    }

    fn delete(&mut self, message: MessageId) -> Option<OutboxRow> {
        let number = self.numbers.remove(&message)?;
        let entry = self.rows.remove(&number)?;
        if let Some(lane) = self.lanes.get_mut(&entry.lane) {
            lane.rows.remove(&number);
        }
        Some(entry.row)
    }
}

fn ordering_key(row: &OutboxRow) -> OrderingKey {
    (row.tenant.clone(), row.aggregate_type.clone(), row.aggregate_id.clone())
}
