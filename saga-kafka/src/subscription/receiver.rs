//! The receiving end of a subscription.
//!
//! # Cancel safety
//! A dropped `receive` loses nothing: the group keeps the records. A dropped `settle` has settled all or nothing.

use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use saga_core::transport::{Delivery, Incoming, Settlement, TransportError, TransportErrorKind};

use crate::names::Names;
use crate::publishing::publisher::Publisher;
use crate::subscription::group::Group;
use crate::subscription::state::Item;
use crate::wire::dead_letter;
use crate::wire::record::Record;
use crate::wire::wire::decode;
use saga_core::__private::log;

/// What becomes of records that are rejected.
#[derive(Clone)]
pub(crate) enum Rejected {
    /// They are given up after so many rejections, into this topic.
    GivenUp { after: u32, to: String },
    /// They are delivered again without an end: they are dead letters.
    Kept,
}

/// The receiving end of a subscription.
pub(crate) struct Receiver {
    pub(crate) group: Arc<Group>,
    pub(crate) id: u64,
    pub(crate) names: Names,
    pub(crate) payload_bytes_max: usize,
    pub(crate) rejected: Rejected,
    pub(crate) publisher: Arc<Publisher>,
}

impl Receiver {
    fn delivery(&self, tag: u64, record: &Record, redelivered: bool) -> Delivery {
        let decode = |record: &Record| decode(record, &self.names, self.payload_bytes_max);
        let (message, dead_letter) = match self.rejected {
            Rejected::GivenUp { .. } => (decode(record), None),
            Rejected::Kept => {
                let (record, info) = dead_letter::read(record);
                (decode(&record), Some(info))
            }
        };
        Delivery { tag, redelivered, message, dead_letter, user: None }
    }

    /// Writes a record to the dead letters. Its place in the topic is not passed before that is confirmed.
    fn give_up(&self, item: Item, to: &str) {
        let letter = dead_letter::of(&item.record, to, item.rejections);
        let (group, publisher) = (Arc::clone(&self.group), Arc::clone(&self.publisher));
        log::warn!(group = group.id, topic = item.record.topic, count = item.rejections, "delivery limit reached");
        tokio::spawn(async move {
            let open = Open { group, item: Some(item) };
            match publisher.publish(&[&letter]).await.pop() {
                Some(Ok(())) => open.done(),
                Some(Err(error)) => log::warn!(%error, "dead letter not written, the message is delivered again"),
                None => {}
            }
        });
    }
}

/// A record that is being given up. Unless it is done, it waits again.
struct Open {
    group: Arc<Group>,
    item: Option<Item>,
}

impl Open {
    fn done(mut self) {
        if let Some(item) = self.item.take() {
            self.group.lock().records.done(&item);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.group.lock().records.put_back(item);
            self.group.news.notify_waiters();
        }
    }
}

#[async_trait]
impl Incoming for Receiver {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        loop {
            let mut news = pin!(self.group.news.notified());
            // Registered before the look, so that a record in between is not missed.
            news.as_mut().enable();
            let taken = self.group.take(self.id, limit.max(1));
            if !taken.is_empty() {
                let delivery =
                    |(tag, record, redelivered): (u64, Arc<Record>, bool)| self.delivery(tag, &record, redelivered);
                return Ok(taken.into_iter().map(delivery).collect());
            }
            if self.group.has_ended() {
                return Err(TransportError::new(TransportErrorKind::Closed, "receive", "the transport was closed"));
            }
            news.await;
        }
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        let max = match self.rejected {
            Rejected::GivenUp { after, .. } => Some(after),
            Rejected::Kept => None,
        };
        let mut members = self.group.lock();
        let settle = |(tag, settlement): &(u64, Settlement)| members.records.settle(self.id, *tag, *settlement, max);
        let given_up: Vec<Item> = settled.iter().filter_map(settle).collect();
        drop(members);
        if let Rejected::GivenUp { to, .. } = &self.rejected {
            for item in given_up {
                self.give_up(item, to);
            }
        }
        // What was rejected waits again, also for other receivers.
        self.group.news.notify_waiters();
        Ok(())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.group.leave(self.id);
    }
}
