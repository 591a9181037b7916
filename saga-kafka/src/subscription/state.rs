//! What a subscription has read, handed out and not settled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use saga_core::transport::Settlement;

use crate::subscription::partition::{Partition, Start};
use crate::wire::record::Record;

/// A partition of a topic.
pub(crate) type Place = (String, i32);

/// A record that waits, or that a receiver has.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) record: Arc<Record>,
    pub(crate) redelivered: bool,
    pub(crate) rejections: u32,
    place: Arc<Place>,
    /// The assignment under which it was read.
    assignment: u64,
    /// Its place among those that wait.
    order: u64,
}

/// The records of a subscription in this process, and who has them.
#[derive(Debug, Default)]
pub(crate) struct State {
    partitions: BTreeMap<Arc<Place>, Partition>,
    assignments: u64,
    waiting: BTreeMap<u64, Item>,
    read: u64,
    unsettled: BTreeMap<u64, (u64, Item)>,
    tags: u64,
    /// How many records each receiver may have at a time.
    receivers: BTreeMap<u64, usize>,
    receivers_ever: u64,
}

impl State {
    pub(crate) fn add_receiver(&mut self, prefetch: usize) -> u64 {
        self.receivers_ever += 1;
        self.receivers.insert(self.receivers_ever, prefetch.max(1));
        self.receivers_ever
    }

    /// What the receiver has not settled waits for another one.
    pub(crate) fn remove_receiver(&mut self, receiver: u64) {
        self.receivers.remove(&receiver);
        let has = self.unsettled.iter().filter(|(_, (holder, _))| *holder == receiver);
        for tag in has.map(|(tag, _)| *tag).collect::<Vec<_>>() {
            if let Some((_, item)) = self.unsettled.remove(&tag) {
                self.put_back(item);
            }
        }
    }

    pub(crate) fn has_receivers(&self) -> bool {
        !self.receivers.is_empty()
    }

    /// How many records all receivers together may have.
    pub(crate) fn room(&self) -> usize {
        self.receivers.values().fold(0, |sum, prefetch| sum.saturating_add(*prefetch))
    }

    /// How many records wait for a receiver. Those that wait for a mark take no room: where the cluster refuses the places of a topic,
    /// the others are read on.
    pub(crate) fn waiting(&self) -> usize {
        let unmarked: usize = self.partitions.values().map(Partition::unmarked).sum();
        self.waiting.len().saturating_sub(unmarked)
    }

    /// Whether records of this partition wait for a mark. It is not read on before that.
    pub(crate) fn needs_mark(&self, place: &Place) -> bool {
        self.partitions.get(place).is_some_and(Partition::needs_mark)
    }

    pub(crate) fn assign(&mut self, place: Place, start: Start) {
        self.assignments += 1;
        self.partitions.insert(Arc::new(place), Partition::new(self.assignments, start));
    }

    /// Forgets a partition. The tags of its records are void from now on.
    pub(crate) fn revoke(&mut self, place: &Place) {
        self.partitions.remove(place);
        self.waiting.retain(|_, item| *item.place != *place);
        self.unsettled.retain(|_, (_, item)| *item.place != *place);
    }

    pub(crate) fn places(&self) -> Vec<Place> {
        self.partitions.keys().map(|place| Place::clone(place)).collect()
    }

    /// Where reading goes on, in each partition.
    pub(crate) fn ends(&self) -> Vec<(Place, i64)> {
        self.partitions.iter().map(|(place, partition)| (Place::clone(place), partition.end())).collect()
    }

    /// Where another process would go on, in each partition, in the order of [`ends`](Self::ends).
    pub(crate) fn watermarks(&self) -> Vec<i64> {
        self.partitions.values().map(Partition::watermark).collect()
    }

    /// A record was read. Answers whether it is behind those that were read before.
    ///
    /// If it is not, its topic was made anew, or lost its end with a broker. What was read before is then no longer there: its tags are
    /// void, and reading begins with this record.
    pub(crate) fn read(&mut self, record: Record) -> bool {
        let named = (record.topic.clone(), record.partition);
        let Some((place, partition)) = self.partitions.get_key_value(&named) else { return true };
        let (place, start) = (Arc::clone(place), partition.made_anew(record.offset));
        let is_behind = partition.end() <= record.offset;
        if !is_behind {
            self.revoke(&named);
            self.assign(named, start);
        }
        let Some(partition) = self.partitions.get_mut(&place) else { return true };
        partition.read(record.offset);
        self.read += 1;
        let item = Item {
            redelivered: partition.is_redelivered(record.offset),
            rejections: 0,
            place,
            assignment: partition.assignment,
            order: self.read,
            record: Arc::new(record),
        };
        self.waiting.insert(item.order, item);
        is_behind
    }

    /// Hands records to a receiver, the oldest first, as far as its prefetch allows: their tags, and what they are.
    pub(crate) fn take(&mut self, receiver: u64, limit: usize) -> Vec<(u64, Arc<Record>, bool)> {
        let Some(prefetch) = self.receivers.get(&receiver) else { return Vec::new() };
        let held = self.unsettled.values().filter(|(holder, _)| *holder == receiver).count();
        let count = limit.min(prefetch.saturating_sub(held));
        let is_marked = |item: &Item| {
            self.partitions.get(&item.place).is_some_and(|partition| partition.is_marked(item.record.offset))
        };
        let ready = self.waiting.iter().filter(|(_, item)| is_marked(item)).map(|(order, _)| *order).take(count);
        let mut taken = Vec::new();
        for order in ready.collect::<Vec<_>>() {
            let Some(item) = self.waiting.remove(&order) else { continue };
            self.tags += 1;
            taken.push((self.tags, Arc::clone(&item.record), item.redelivered));
            self.unsettled.insert(self.tags, (receiver, item));
        }
        taken
    }

    /// Settles a record. One that was rejected more often than allowed is returned: it is to be given up, and is open until then.
    pub(crate) fn settle(
        &mut self,
        receiver: u64,
        tag: u64,
        settlement: Settlement,
        rejections_max: Option<u32>,
    ) -> Option<Item> {
        self.unsettled.get(&tag).filter(|(holder, _)| *holder == receiver)?;
        let (_, mut item) = self.unsettled.remove(&tag)?;
        match settlement {
            Settlement::Accept => {
                self.done(&item);
                None
            }
            Settlement::Reject => {
                item.rejections = item.rejections.saturating_add(1);
                if rejections_max.is_some_and(|max| item.rejections > max) {
                    return Some(item);
                }
                self.put_back(item);
                None
            }
        }
    }

    /// A record needs no delivery any more. Nothing happens if its partition was given away meanwhile.
    pub(crate) fn done(&mut self, item: &Item) {
        if let Some(partition) = self.partition_of(item) {
            partition.settle(item.record.offset);
        }
    }

    /// A record waits again, in its place.
    pub(crate) fn put_back(&mut self, mut item: Item) {
        if self.partition_of(&item).is_some() {
            item.redelivered = true;
            self.waiting.insert(item.order, item);
        }
    }

    /// Whether records wait for a mark to be committed.
    pub(crate) fn needs_marks(&self) -> bool {
        self.partitions.values().any(Partition::needs_mark)
    }

    pub(crate) fn to_commit(&self) -> Vec<(Place, Start)> {
        let changed =
            |(place, partition): (&Arc<Place>, &Partition)| Some((Place::clone(place), partition.to_commit()?));
        self.partitions.iter().filter_map(changed).collect()
    }

    /// What is to be committed at last of the partitions that are given away.
    pub(crate) fn to_give_away(&self, places: &BTreeSet<Place>) -> Vec<(Place, Start)> {
        let given = self.partitions.iter().filter(|(place, _)| places.contains(*place));
        given.filter_map(|(place, partition)| Some((Place::clone(place), partition.to_give_away()?))).collect()
    }

    pub(crate) fn committed(&mut self, commits: &[(Place, Start)]) {
        for (place, start) in commits {
            if let Some(partition) = self.partitions.get_mut(place) {
                partition.committed(*start);
            }
        }
    }

    fn partition_of(&mut self, item: &Item) -> Option<&mut Partition> {
        self.partitions.get_mut(&item.place).filter(|partition| partition.assignment == item.assignment)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
