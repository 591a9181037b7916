//! The outbox: its rows, their lanes, and the ordering keys that are parked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::live_members::LiveMembers;
use super::locks::OrderingKey;
use super::work_row::HeldLease;
use crate::key::Tenant;
use crate::memory::clock::Moment;
use crate::store::{Lease, LeasedLane, MessageId, NewMessage, NewParked, OutboxDepth, OutboxRow, ParkedKey, Timestamp};

/// The rows of the outbox, their lanes, and the keys that are parked.
#[derive(Debug, Default)]
pub(in crate::memory) struct OutboxTable {
    /// In the order of the commits.
    rows: BTreeMap<u64, Entry>,
    numbers: BTreeMap<MessageId, u64>,
    inserted: u64,
    lanes: BTreeMap<u8, Lane>,
    parked: BTreeMap<OrderingKey, ParkedKey>,
    /// How many messages were published under each ordering key, and when the last one was.
    published: BTreeMap<OrderingKey, (u64, Timestamp)>,
}

#[derive(Debug)]
struct Entry {
    row: OutboxRow,
    lane: u8,
    due_at: Timestamp,
}

#[derive(Debug, Default)]
pub(in crate::memory) struct Lane {
    epoch: u64,
    pub(in crate::memory) lease: Option<HeldLease>,
    rows: BTreeSet<u64>,
}

impl OutboxTable {
    /// Inserts a message, unless its id is already in the outbox.
    pub(in crate::memory) fn insert(&mut self, new: NewMessage, now: Timestamp) {
        if self.numbers.contains_key(&new.id) {
            return;
        }
        self.inserted += 1;
        let number = self.inserted;
        self.numbers.insert(new.id, number);
        self.lanes.entry(new.lane).or_default().rows.insert(number);
        let (lane, due_at) = (new.lane, now.plus(new.due_in));
        let row = OutboxRow::committed(new, now);
        self.rows.insert(number, Entry { row, lane, due_at });
    }

    /// How many messages were published under this ordering key.
    pub(in crate::memory) fn published(&self, key: &OrderingKey) -> u64 {
        self.published.get(key).map_or(0, |(position, _)| *position)
    }

    /// Inserts a message that counts for its ordering key.
    pub(in crate::memory) fn publish(&mut self, new: NewMessage, now: Timestamp) {
        let key = (new.tenant.clone(), new.aggregate_type.clone(), new.aggregate_id.clone());
        self.published.insert(key, (new.position, now));
        self.insert(new, now);
    }

    /// Forgets the counters of ordering keys that were not used since that time and have no message here.
    pub(in crate::memory) fn forget_published(&mut self, used_before: Timestamp, limit: usize) -> u64 {
        let waiting: BTreeSet<OrderingKey> = self.rows.values().map(|entry| ordering_key(&entry.row)).collect();
        let old = self.published.iter().filter(|(key, (_, at))| *at < used_before && !waiting.contains(*key));
        let old: Vec<OrderingKey> = old.map(|(key, _)| key.clone()).take(limit).collect();
        for key in &old {
            self.published.remove(key);
        }
        old.len() as u64
    }

    /// The keys of the sagas that messages here name, in a tenant.
    pub(in crate::memory) fn sagas_named(&self, tenant: &Tenant) -> BTreeSet<&str> {
        let of_tenant = self.rows.values().map(|entry| &entry.row).filter(|row| row.tenant == *tenant);
        of_tenant.filter_map(|row| row.headers.saga_key.as_deref()).collect()
    }

    pub(in crate::memory) fn held(&mut self, lane: LeasedLane) -> Option<&mut Lane> {
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

    /// An ordering key keeps the places of its rows in the order of the commits, so that no key is starved, and fills
    /// them by position.
    pub(in crate::memory) fn read(&self, lane: LeasedLane, limit: usize, now: Timestamp) -> Vec<OutboxRow> {
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

    pub(in crate::memory) fn park(&mut self, new: &NewParked, now: Timestamp) {
        let message = new.message;
        let Some(row) = self.numbers.get(&message).and_then(|number| self.rows.get(number)).map(|entry| &entry.row)
        else {
            return;
        };
        let key = ordering_key(row);
        let since = self.parked.get(&key).map_or(now, |parked| parked.since);
        let retry_at = new.retry_in.map(|delay| now.plus(delay));
        let parked = ParkedKey::new(row, new, since, retry_at);
        self.parked.insert(key, parked);
    }

    pub(in crate::memory) fn release(&mut self, message: MessageId) -> bool {
        let parked_before = self.parked.len();
        self.parked.retain(|_, parked| parked.message != message);
        self.parked.len() != parked_before
    }

    pub(in crate::memory) fn delete(&mut self, message: MessageId) -> Option<OutboxRow> {
        let number = self.numbers.remove(&message)?;
        let entry = self.rows.remove(&number)?;
        if let Some(lane) = self.lanes.get_mut(&entry.lane) {
            lane.rows.remove(&number);
        }
        Some(entry.row)
    }

    /// For how long the oldest message of the same ordering key has waited.
    pub(in crate::memory) fn oldest_age(&self, message: &NewMessage, now: Timestamp) -> Option<Duration> {
        let key = (&message.tenant, &message.aggregate_type, &message.aggregate_id);
        let numbers = self.lanes.get(&message.lane).into_iter().flat_map(|lane| &lane.rows);
        let rows = numbers.filter_map(|number| self.rows.get(number)).map(|entry| &entry.row);
        let same = rows.filter(|row| (&row.tenant, &row.aggregate_type, &row.aggregate_id) == key);
        same.map(|row| now.since(row.committed_at)).max()
    }

    /// Leases free lanes that have something to send.
    pub(in crate::memory) fn lease_lanes(
        &mut self,
        lease: Lease,
        limit: usize,
        members: &LiveMembers,
        now: Timestamp,
    ) -> Vec<LeasedLane> {
        let has_rows = self.lanes_with_rows(now);
        let free = self.lanes.iter_mut().filter(|(number, lane)| {
            let is_own = |held: &HeldLease| held.owner == lease.owner;
            has_rows.contains(number) && lane.lease.is_none_or(|held| is_own(&held) || !members.holds(held, now))
        });
        let take = |(number, lane): (&u8, &mut Lane)| {
            lane.epoch += 1;
            lane.lease = Some(HeldLease::new(lease, now));
            LeasedLane { lane: *number, epoch: lane.epoch }
        };
        free.take(limit).map(take).collect()
    }

    pub(in crate::memory) fn parked(&self, tenant: Option<&Tenant>, limit: usize) -> Vec<ParkedKey> {
        let is_asked = |key: &&ParkedKey| tenant.is_none_or(|tenant| key.tenant == *tenant);
        self.parked.values().filter(is_asked).take(limit).cloned().collect()
    }

    pub(in crate::memory) fn depth(&self, now: Timestamp) -> OutboxDepth {
        OutboxDepth {
            rows: self.rows.len() as u64,
            oldest_age: self.rows.values().next().map(|entry| now.since(entry.row.committed_at)),
            parked: self.parked.len() as u64,
        }
    }
}

fn ordering_key(row: &OutboxRow) -> OrderingKey {
    (row.tenant.clone(), row.aggregate_type.clone(), row.aggregate_id.clone())
}
