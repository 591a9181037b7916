//! What a consumer does when partitions come and go.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::types::RDKafkaRespErr;
use saga_core::__private::log;

use crate::error::{describe, describe_connection, is_summary};
use crate::subscription::commits::commit_apart;
use crate::subscription::group::Group;
use crate::subscription::queues::Queues;
use crate::{library_log, subscription::places};

/// What librdkafka calls while the consumer is polled.
pub(crate) struct Context {
    group: Arc<Group>,
    timeout: Duration,
    /// Closed before the consumer is dropped.
    pub(crate) queues: Queues<Self>,
    failure: Mutex<Option<String>>,
}

impl Context {
    /// The context of a consumer that this thread reads.
    pub(crate) fn new(group: Arc<Group>, timeout: Duration) -> Self {
        Self { group, timeout, queues: Queues::new(), failure: Mutex::default() }
    }

    /// Why the consumer cannot go on, if it cannot.
    pub(crate) fn take_failure(&self) -> Option<String> {
        self.failure().take()
    }

    fn failure(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins where the group was. New places are committed first, so that nothing that is sent from now on is missed.
    fn assign(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) -> KafkaResult<()> {
        let places = places::of(list);
        let starts = places::starts(consumer, &places, |topic| self.group.begins(topic), self.timeout)?;
        let offsets = starts.iter().map(|(place, start)| (place.clone(), Some(start.offset)));
        for place in &places {
            self.queues.open(place);
        }
        consumer.incremental_assign(&places::list(offsets)?)?;
        log::debug!(group = self.group.id, partitions = ?places, "partitions assigned");
        let mut members = self.group.lock();
        members.is_joined = true;
        for (place, start) in starts {
            members.records.assign(place, start);
        }
        Ok(())
    }

    /// Commits what was settled, and waits for nothing else: what receivers still have comes again at the next owner.
    fn revoke(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) -> KafkaResult<()> {
        let places: BTreeSet<_> = places::of(list).into_iter().collect();
        if consumer.assignment_lost() {
            log::warn!(group = self.group.id, partitions = ?places, "partitions lost");
        } else {
            let commits = self.group.lock().records.to_give_away(&places);
            let came = commit_apart(commits, |places| places::commit(consumer, places));
            for error in came.failure.iter().chain(came.refused.values()) {
                let reason = describe("commit", error);
                log::debug!(group = self.group.id, reason, "last commit failed");
            }
            log::debug!(group = self.group.id, partitions = ?places, "partitions given away");
        }
        for place in &places {
            self.queues.close(place);
        }
        let mut members = self.group.lock();
        for place in &places {
            members.records.revoke(place);
        }
        drop(members);
        consumer.incremental_unassign(list)
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        library_log::tell(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let mut members = self.group.lock();
        if !(is_summary(&error) && members.last_error.is_some()) {
            members.last_error = Some(describe_connection("receive", &error, reason));
        }
    }
}

impl ConsumerContext for Context {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, event: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let outcome = if event == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            self.assign(consumer, list)
        } else {
            self.revoke(consumer, list)
        };
        if let Err(error) = outcome {
            *self.failure() = Some(describe("take over partitions", &error));
        }
    }
}
