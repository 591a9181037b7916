//! The thread of a subscription, which reads and commits.
//!
//! librdkafka calls back while it is polled, so all of its decisions are made on this thread, one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::BorrowedMessage;
use tokio::time::Instant;

use crate::config;
use crate::error::describe;
use crate::options::KafkaOptions;
use crate::subscription::commits::{Commits, commit_apart};
use crate::subscription::group::Group;
use crate::subscription::places;
use crate::subscription::rebalance::Context;
use crate::subscription::state::Place;
use crate::subscription::watchdog::Watchdog;
use crate::wire::record::Record;
use saga_core::__private::log;

/// How long the thread waits for a record, before it looks at what else there is to do. A record wakes it, and a receiver that needs some.
const POLL: Duration = Duration::from_millis(20);
/// How many records are read at a time.
const BATCH: usize = 256;
/// How long settled records wait for their commit.
const COMMIT_EVERY: Duration = Duration::from_millis(100);
/// How long to wait after a commit that failed.
const COMMIT_AGAIN: Duration = Duration::from_millis(250);
/// How often it is looked whether the group has all its places.
const READY_EVERY: Duration = Duration::from_millis(100);
/// How often it is looked whether records wait that are not received.
const WATCH_EVERY: Duration = Duration::from_secs(30);
/// The pause before a consumer is built anew: it doubles up to the limit.
const REBUILD: Duration = Duration::from_millis(100);
const REBUILD_MAX: Duration = Duration::from_secs(10);

/// Reads until the group is closed.
pub(crate) fn run(group: &Arc<Group>, options: &KafkaOptions) {
    let mut pause = REBUILD;
    let mut watchdog = Watchdog::default();
    while !group.is_closing() {
        let began = Instant::now();
        let reason = match Reader::create(group, options) {
            Ok(mut reader) => match reader.read(&mut watchdog) {
                Ok(()) => return,
                Err(reason) => reason,
            },
            Err(error) => describe("receive", &error),
        };
        log::warn!(group = group.id, reason, "consumer lost");
        let mut members = group.lock();
        members.rebuilds += 1;
        members.is_joined = false;
        members.last_error = Some(reason);
        drop(members);
        pause = if began.elapsed() > REBUILD_MAX { REBUILD } else { (pause * 2).min(REBUILD_MAX) };
        let until = Instant::now() + pause;
        while Instant::now() < until && !group.is_closing() {
            std::thread::sleep(POLL);
        }
    }
}

struct Reader<'a> {
    group: &'a Arc<Group>,
    timeout: Duration,
    consumer: Arc<BaseConsumer<Context>>,
    topics: BTreeSet<String>,
    /// The topics whose places the cluster refuses.
    refused: BTreeSet<String>,
    commit_at: Instant,
    ready_at: Instant,
    watch_at: Instant,
}

impl<'a> Reader<'a> {
    fn create(group: &'a Arc<Group>, options: &KafkaOptions) -> Result<Self, KafkaError> {
        let context = Context::new(Arc::clone(group), options.connect_timeout);
        let consumer: Arc<BaseConsumer<Context>> =
            Arc::new(config::consumer(options, &group.id).create_with_context(context)?);
        consumer.context().queues.attach(&consumer);
        let now = Instant::now();
        Ok(Self {
            group,
            timeout: options.connect_timeout,
            consumer,
            topics: BTreeSet::new(),
            refused: BTreeSet::new(),
            commit_at: now,
            ready_at: now,
            watch_at: now + WATCH_EVERY,
        })
    }

    /// Reads until the group is closed; what is settled is then committed while the consumer is dropped.
    ///
    /// # Errors
    /// Why the consumer has to be built anew.
    fn read(&mut self, watchdog: &mut Watchdog) -> Result<(), String> {
        while !self.group.is_closing() {
            let failed = |error| describe("receive", &error);
            self.subscribe().map_err(failed)?;
            self.commit();
            self.look_whether_ready();
            if self.is_stuck(watchdog) {
                return Err("records wait, and none is received".to_owned());
            }
            self.poll()?;
            if let Some(reason) = self.consumer.context().take_failure() {
                return Err(reason);
            }
        }
        Ok(())
    }

    fn subscribe(&mut self) -> Result<(), KafkaError> {
        let topics: BTreeSet<String> = self.group.lock().topics.keys().cloned().collect();
        if topics != self.topics {
            self.consumer.subscribe(&topics.iter().map(String::as_str).collect::<Vec<_>>())?;
            self.topics = topics;
        }
        Ok(())
    }

    /// Reads what there is room for. If there is nothing, it waits.
    fn poll(&self) -> Result<(), String> {
        let mut is_news = false;
        // Rebalances and errors. Records have the queues of their partitions.
        for _ in 0..BATCH {
            let Some(came) = self.consumer.poll(Duration::ZERO) else { break };
            self.came(came)?;
            is_news = true;
        }
        let room = self.group.lock().room_to_read().min(BATCH);
        let mut outcome = Ok(());
        let is_read = |place: &Place| !self.group.lock().records.needs_mark(place);
        is_news |= 0 < self.consumer.context().queues.read(room, is_read, |came| {
            if let Err(reason) = self.came(came) {
                outcome = Err(reason);
            }
        });
        if is_news {
            self.group.news.notify_waiters();
        } else {
            std::thread::park_timeout(POLL);
        }
        outcome
    }

    fn came(&self, came: KafkaResult<BorrowedMessage<'_>>) -> Result<(), String> {
        match came {
            Ok(message) => {
                if !self.group.lock().records.read(Record::read(&message)) {
                    let (topic, partition, offset) = (message.topic(), message.partition(), message.offset());
                    log::warn!(group = self.group.id, topic, partition, offset, "topic made anew or cut");
                }
            }
            Err(error @ KafkaError::MessageConsumptionFatal(_)) => return Err(describe("receive", &error)),
            // The library goes on by itself, as soon as it can.
            Err(error) => self.group.lock().last_error = Some(describe("receive", &error)),
        }
        Ok(())
    }

    /// Commits what was settled, and that records may be handed out from now on.
    fn commit(&mut self) {
        let members = self.group.lock();
        let is_urgent = members.records.needs_marks();
        let now = Instant::now();
        // After a failure even the urgent wait.
        if now < self.commit_at && (!is_urgent || self.commit_at - now > COMMIT_EVERY) {
            return;
        }
        let commits = members.records.to_commit();
        drop(members);
        if commits.is_empty() {
            return;
        }
        let came = commit_apart(commits, |places| places::commit(&self.consumer, places));
        if !came.committed.is_empty() {
            self.group.lock().records.committed(&came.committed);
            self.group.news.notify_waiters();
        }
        let is_complete = came.failure.is_none() && came.refused.is_empty();
        self.commit_at = Instant::now() + if is_complete { COMMIT_EVERY } else { COMMIT_AGAIN };
        if let Some(error) = &came.failure {
            let reason = describe("commit", error);
            log::debug!(group = self.group.id, reason, "commit failed");
            self.group.lock().last_error = Some(reason);
        }
        self.tell_refused(&came);
    }

    /// Says once that the cluster refuses the places of a topic, and once that it takes them again.
    fn tell_refused(&mut self, came: &Commits) {
        for (topic, error) in &came.refused {
            let reason = describe(&format!("commit in the topic {topic}"), error);
            if self.refused.insert(topic.clone()) {
                log::warn!(group = self.group.id, topic, reason, "commit refused");
            }
            self.group.lock().last_error = Some(reason);
        }
        for ((topic, _), _) in &came.committed {
            if self.refused.remove(topic) {
                log::info!(group = self.group.id, topic, "commit accepted again");
            }
        }
    }

    fn look_whether_ready(&mut self) {
        let unready = self.group.lock().unready.clone();
        if unready.is_empty() || Instant::now() < self.ready_at {
            return;
        }
        for topic in unready {
            match places::committed(&self.consumer, &topic, self.timeout) {
                Ok(committed) if committed.is_complete() => {
                    self.group.lock().unready.remove(&topic);
                    self.group.news.notify_waiters();
                }
                Ok(_) => {}
                Err(error) => self.group.lock().last_error = Some(describe("ask for the places of the group", &error)),
            }
        }
        self.ready_at = Instant::now() + READY_EVERY;
    }

    /// Looks how far the group is behind, and whether the consumer is silent although it is.
    fn is_stuck(&mut self, watchdog: &mut Watchdog) -> bool {
        if Instant::now() < self.watch_at {
            return false;
        }
        self.watch_at = Instant::now() + WATCH_EVERY;
        let (ends, places, is_full, are_held) = {
            let members = self.group.lock();
            let (records, is_full) = (&members.records, members.room_to_read() == 0);
            let ends = records.ends();
            // What waits for a mark is not read on, and that is not the consumer's fault.
            let are_held: Vec<bool> = ends.iter().map(|(place, _)| records.needs_mark(place)).collect();
            (ends, records.watermarks(), is_full, are_held)
        };
        let (mut lag, mut is_behind) = (0, false);
        for ((((topic, partition), end), watermark), is_held) in ends.iter().zip(places).zip(are_held) {
            match self.consumer.fetch_watermarks(topic, *partition, self.timeout) {
                Ok((_, high)) => {
                    lag += u64::try_from(high - watermark).unwrap_or(0);
                    is_behind |= high > *end && !is_held;
                }
                // A cluster that does not answer is no reason to blame the consumer.
                Err(_) => return false,
            }
        }
        self.group.lock().lag = Some(lag);
        watchdog.is_stuck(ends, is_behind && !is_full)
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.consumer.context().queues.close_all();
    }
}
