//! The queue of a subscription name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::transport::{DeadLetterInfo, Delivery, Message};

/// One call of `publish`, which waits until every subscription has settled every message.
#[derive(Debug)]
pub(in crate::memory) struct Call {
    open: AtomicUsize,
    refused: Mutex<BTreeSet<usize>>,
    done: Notify,
}

impl Call {
    pub(in crate::memory) fn new(open: usize) -> Arc<Self> {
        Arc::new(Self { open: AtomicUsize::new(open), refused: Mutex::new(BTreeSet::new()), done: Notify::new() })
    }

    /// More of its messages have to be settled.
    pub(in crate::memory) fn add_open(&self, count: usize) {
        self.open.fetch_add(count, Ordering::AcqRel);
    }

    /// Waits until all messages are settled, and answers which were dead-lettered.
    pub(in crate::memory) async fn settled(&self) -> BTreeSet<usize> {
        while self.open.load(Ordering::Acquire) > 0 {
            self.done.notified().await;
        }
        std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(in crate::memory) fn settle(&self, index: usize, is_taken: bool) {
        if !is_taken {
            self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(index);
        }
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done.notify_one();
        }
    }
}

/// A message in the queue of one subscription name.
#[derive(Debug)]
pub(in crate::memory) struct Item {
    pub(in crate::memory) message: Arc<Message>,
    pub(in crate::memory) call: Arc<Call>,
    pub(in crate::memory) index: usize,
    pub(in crate::memory) rejections: u32,
    pub(in crate::memory) redelivered: bool,
    /// For a dead letter: the reason.
    pub(in crate::memory) dead_letter: Option<DeadLetterInfo>,
}

impl Item {
    pub(in crate::memory) fn new(message: Arc<Message>, call: Arc<Call>, index: usize) -> Self {
        Self { message, call, index, rejections: 0, redelivered: false, dead_letter: None }
    }
}

/// The messages that wait under one name, in the order of sending, and the unsettled ones of each receiver.
#[derive(Debug, Default)]
pub(in crate::memory) struct Queue {
    pub(in crate::memory) topics: BTreeSet<String>,
    pub(in crate::memory) messages_max: Option<usize>,
    pub(in crate::memory) waiting: BTreeMap<u64, Item>,
    unsettled: BTreeMap<u64, (u64, Item)>,
    pub(in crate::memory) arrived: Arc<Notify>,
}

impl Queue {
    pub(in crate::memory) fn is_full(&self) -> bool {
        self.messages_max.is_some_and(|max| self.waiting.len() + self.unsettled.len() >= max)
    }

    /// Delivers waiting messages, as far as the receiver's prefetch allows.
    pub(in crate::memory) fn take(&mut self, receiver: u64, limit: usize, prefetch: usize) -> Vec<Delivery> {
        let held = self.unsettled.values().filter(|(holder, _)| *holder == receiver).count();
        let mut deliveries = Vec::new();
        while deliveries.len() < limit.min(prefetch.saturating_sub(held)) {
            let Some((tag, item)) = self.waiting.pop_first() else { break };
            let message = Message::clone(&item.message);
            let death = item.dead_letter.clone();
            deliveries.push(Delivery {
                tag,
                redelivered: item.redelivered,
                message: Ok(message),
                dead_letter: death,
                user: None,
            });
            self.unsettled.insert(tag, (receiver, item));
        }
        deliveries
    }

    pub(in crate::memory) fn accept(&mut self, receiver: u64, tag: u64) {
        if let Some(item) = self.held(receiver, tag) {
            item.call.settle(item.index, true);
        }
    }

    /// Puts the message back in its place. After `rejections_max` rejections the message is returned to the caller
    /// instead. A dead letter is always delivered again.
    pub(in crate::memory) fn reject(&mut self, receiver: u64, tag: u64, rejections_max: u32) -> Option<Item> {
        let mut item = self.held(receiver, tag)?;
        item.rejections += 1;
        if item.rejections > rejections_max && item.dead_letter.is_none() {
            return Some(item);
        }
        self.put_back(tag, item);
        None
    }

    /// A receiver is gone: its unsettled messages are delivered again.
    pub(in crate::memory) fn forget(&mut self, receiver: u64) {
        let tags = self.unsettled.iter().filter(|(_, (holder, _))| *holder == receiver).map(|(tag, _)| *tag);
        for tag in tags.collect::<Vec<_>>() {
            if let Some((_, item)) = self.unsettled.remove(&tag) {
                self.put_back(tag, item);
            }
        }
    }

    fn put_back(&mut self, tag: u64, mut item: Item) {
        item.redelivered = true;
        self.put(tag, item);
    }

    pub(in crate::memory) fn put(&mut self, tag: u64, item: Item) {
        self.waiting.insert(tag, item);
        self.arrived.notify_waiters();
    }

    /// Takes an unsettled message from its receiver; nothing where the tag is not that receiver's, or no longer.
    fn held(&mut self, receiver: u64, tag: u64) -> Option<Item> {
        self.unsettled.get(&tag).filter(|(holder, _)| *holder == receiver)?;
        self.unsettled.remove(&tag).map(|(_, item)| item)
    }
}
