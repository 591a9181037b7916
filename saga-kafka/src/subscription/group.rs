//! A subscription in this process: its records, its receivers, and the thread that reads for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use saga_core::transport::{TransportError, TransportErrorKind};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::error::too_late;
use crate::health::SubscriptionHealth;
use crate::subscription::state::State;
use crate::wire::record::Record;

/// How long a member stays in its group without a receiver: for a runtime that subscribes again.
const LINGER: Duration = Duration::from_secs(5);

/// Where a new group begins in a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// With its first record: all of them are for this group.
    Beginning,
    /// With the first one after the group was made.
    End,
}

/// A subscription in this process.
#[derive(Debug)]
pub(crate) struct Group {
    /// The subscription's name.
    name: String,
    /// The name of the consumer group.
    pub(crate) id: String,
    members: Mutex<Members>,
    reader: OnceLock<Thread>,
    /// There are records, or the group is ready or closed.
    pub(crate) news: Notify,
    ended: watch::Sender<bool>,
}

/// What the receivers and the thread share.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) records: State,
    pub(crate) topics: BTreeMap<String, From>,
    /// The topics in which the group does not have a place in every partition yet.
    pub(crate) unready: BTreeSet<String>,
    pub(crate) is_joined: bool,
    pub(crate) lag: Option<u64>,
    pub(crate) rebuilds: u32,
    pub(crate) last_error: Option<String>,
    is_closing: bool,
    idle_since: Option<Instant>,
}

impl Group {
    /// A group with a first receiver, and the thread on which `read` reads for it.
    pub(crate) fn start(
        name: String,
        id: String,
        topics: BTreeMap<String, From>,
        prefetch: usize,
        read: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) -> Result<(Arc<Self>, u64), TransportError> {
        let mut members = Members::default();
        let receiver = members.records.add_receiver(prefetch);
        members.add_topics(topics);
        let (ended, _) = watch::channel(false);
        let group = Arc::new(Self {
            name,
            id,
            members: Mutex::new(members),
            reader: OnceLock::new(),
            news: Notify::new(),
            ended,
        });
        let reading = Arc::clone(&group);
        let thread = std::thread::Builder::new().name("saga-kafka reading".to_owned());
        thread
            .spawn(move || {
                _ = reading.reader.set(std::thread::current());
                let _ended = Ended(&reading);
                read(&reading);
            })
            .map_err(|error| TransportError::new(TransportErrorKind::Unavailable, "subscribe", error.to_string()))?;
        Ok((group, receiver))
    }

    /// Adds a receiver, unless the group is closing.
    pub(crate) fn join(&self, topics: &BTreeMap<String, From>, prefetch: usize) -> Option<u64> {
        let mut members = self.lock();
        if members.is_closing || *self.ended.borrow() {
            return None;
        }
        members.idle_since = None;
        members.add_topics(topics.clone());
        Some(members.records.add_receiver(prefetch))
    }

    pub(crate) fn leave(&self, receiver: u64) {
        let mut members = self.lock();
        members.records.remove_receiver(receiver);
        if !members.records.has_receivers() {
            members.idle_since = Some(Instant::now());
        }
        drop(members);
        self.news.notify_waiters();
    }

    /// Waits until the group has a place in every partition of these topics: what is sent from then on is received.
    pub(crate) async fn ready(&self, topics: &BTreeMap<String, From>, limit: Duration) -> Result<(), TransportError> {
        let ready = async {
            loop {
                let news = self.news.notified();
                tokio::pin!(news);
                news.as_mut().enable();
                if !topics.keys().any(|topic| self.lock().unready.contains(topic)) {
                    return;
                }
                news.await;
            }
        };
        if tokio::time::timeout(limit, ready).await.is_ok() {
            return Ok(());
        }
        let doing = format!("find the places of the group {} in its topics", self.id);
        match self.lock().last_error.clone() {
            Some(reason) => Err(TransportError::new(TransportErrorKind::Unavailable, "subscribe", reason)),
            None => Err(too_late("subscribe", &doing, limit)),
        }
    }

    /// Hands records to a receiver, the oldest first: their tags, and what they are. The thread is woken when it should read more.
    pub(crate) fn take(&self, receiver: u64, limit: usize) -> Vec<(u64, Arc<Record>, bool)> {
        let mut members = self.lock();
        let taken = members.records.take(receiver, limit);
        let is_low = members.records.waiting() < members.records.room();
        drop(members);
        if let Some(reader) = self.reader.get().filter(|_| is_low && !taken.is_empty()) {
            reader.unpark();
        }
        taken
    }

    /// Where the group begins in a topic, if it is new to it.
    pub(crate) fn begins(&self, topic: &str) -> From {
        self.lock().topics.get(topic).copied().unwrap_or(From::Beginning)
    }

    /// Leaves the group soon.
    pub(crate) fn close(&self) {
        self.lock().is_closing = true;
    }

    /// Waits until the group is left.
    pub(crate) async fn ended(&self) {
        let mut ended = self.ended.subscribe();
        // The sender is part of the group, which is borrowed here.
        _ = ended.wait_for(|ended| *ended).await;
    }

    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Whether the thread is to end: also when there has been no receiver for a while.
    pub(crate) fn is_closing(&self) -> bool {
        let mut members = self.lock();
        members.is_closing |= members.idle_since.is_some_and(|since| since.elapsed() >= LINGER);
        members.is_closing
    }

    pub(crate) fn health(&self) -> SubscriptionHealth {
        let members = self.lock();
        SubscriptionHealth {
            name: self.name.clone(),
            is_joined: members.is_joined,
            partitions: members.records.places().len(),
            lag: members.lag,
            rebuilds: members.rebuilds,
            last_error: members.last_error.clone(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Members {
    /// How many more records may be read: as many wait as the receivers may have, and as many again.
    pub(crate) fn room_to_read(&self) -> usize {
        self.records.room().saturating_mul(2).max(1).saturating_sub(self.records.waiting())
    }

    fn add_topics(&mut self, topics: BTreeMap<String, From>) {
        for (topic, from) in topics {
            if self.topics.insert(topic.clone(), from).is_none() && from == From::End {
                self.unready.insert(topic);
            }
        }
    }
}

/// Tells that the thread has ended, also when it panics.
struct Ended<'a>(&'a Group);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.close();
        self.0.ended.send_replace(true);
        self.0.news.notify_waiters();
    }
}
