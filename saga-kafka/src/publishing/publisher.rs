//! What sends.
//!
//! # Cancel safety
//! A dropped `publish` leaves its messages sent or not sent.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::Producer as _;
use saga_core::transport::{TransportError, TransportErrorKind as Kind};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::error::{failed, is_of_a_lost_producer, is_unknown_topic, not_delivered, too_late};
use crate::health::{PublisherHealth, Reach};
use crate::options::KafkaOptions;
use crate::publishing::partitioner::partition;
use crate::publishing::producer::{Answer, Producer, lost};
use crate::publishing::spread::{Look, Spread};
use crate::topics;
use crate::wire::wire::Outgoing;
use saga_core::__private::log;

/// How long between two looks at the topics, and at a cluster that cannot be reached.
const LOOK_EVERY: Duration = Duration::from_secs(30);
const LOOK_AGAIN_EVERY: Duration = Duration::from_secs(1);
/// How long a look may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);
/// A topic that every cluster knows, or can say that it does not know.
const ANY_TOPIC: &str = "__consumer_offsets";

/// What sends, and a thread that looks at the cluster.
pub(crate) struct Publisher {
    inner: Arc<Inner>,
    /// Asks the thread to look. The thread ends when this and the producer are dropped.
    doubts: SyncSender<()>,
}

struct Inner {
    options: KafkaOptions,
    producer: Mutex<Arc<Producer>>,
    spread: Mutex<Spread>,
    reach: Reach,
}

/// A message under way, and the producer that sends it.
struct Sending {
    producer: Arc<Producer>,
    answer: oneshot::Receiver<Answer>,
}

impl Publisher {
    pub(crate) async fn connect(options: KafkaOptions) -> Result<Self, TransportError> {
        let (doubts, looks) = sync_channel(1);
        let reach = Reach::default();
        let producer = Producer::create(&options, reach.clone(), doubts.clone())?;
        let (asked, timeout) = (Arc::clone(&producer), options.connect_timeout);
        let first = blocking(move || look_up(&asked, ANY_TOPIC, timeout)).await;
        if let Err(error) = first {
            return Err(match reach.read(Vec::new()).last_error {
                // What the library says about the connection is more than that nothing was answered.
                Some(reason) => TransportError::new(error.kind(), "connect", reason),
                None => too_late("connect", "connect to the cluster", timeout),
            });
        }
        let inner = Arc::new(Inner { options, producer: Mutex::new(producer), spread: Mutex::default(), reach });
        let (looking, reach) = (Arc::downgrade(&inner), inner.reach.clone());
        let thread = std::thread::Builder::new().name("saga-kafka topics".to_owned());
        let spawned = thread.spawn(move || look_until_the_end(&looking, &reach, &looks));
        spawned.map_err(|error| TransportError::new(Kind::Unavailable, "connect", error.to_string()))?;
        Ok(Self { inner, doubts })
    }

    pub(crate) fn reachable(&self) -> Result<(), TransportError> {
        self.inner.reach.check()
    }

    pub(crate) fn health(&self) -> PublisherHealth {
        let changed = lock(&self.inner.spread).changed();
        self.inner.reach.read(changed)
    }

    /// Spreads keys over as many partitions as there are.
    pub(crate) fn confirm_partitions(&self, topic: &str) {
        lock(&self.inner.spread).confirm(topic);
    }

    /// Makes sure that a topic is there that is received from.
    pub(crate) async fn require(&self, topic: &str, partitions: i32) -> Result<(), TransportError> {
        if self.inner.find(topic).await?.is_none() {
            let count = topics::create(&self.inner.options, topic, partitions).await?;
            log::debug!(topic, count, "topic found");
        }
        Ok(())
    }

    /// Sends messages, and waits until each is accepted or not. The messages of a topic are sent as soon as it is found.
    pub(crate) async fn publish(&self, messages: &[&Outgoing]) -> Vec<Result<(), TransportError>> {
        let mut topics: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, message) in messages.iter().enumerate() {
            topics.entry(&message.topic).or_default().push(index);
        }
        let mut sendings: Vec<_> = messages.iter().map(|_| None).collect();
        let mut send = |indexes: Vec<usize>, found: Result<i32, TransportError>| {
            for index in indexes {
                sendings[index] = Some(match &found {
                    Ok(count) => self.send(messages[index], *count),
                    Err(error) => Err(again(error, error.kind())),
                });
            }
        };
        // No topic waits for another one, which may have no leader. Dropping the set ends its tasks.
        let mut looking = JoinSet::new();
        for (topic, indexes) in topics {
            match self.inner.known(topic) {
                Ok(Some(count)) => send(indexes, Ok(count)),
                Err(error) => send(indexes, Err(error)),
                Ok(None) => {
                    let is_addressed = messages[indexes[0]].is_addressed;
                    let (inner, topic) = (Arc::clone(&self.inner), topic.to_owned());
                    looking.spawn(async move { (indexes, inner.partitions_of(&topic, is_addressed).await) });
                }
            }
        }
        while let Some(looked) = looking.join_next().await {
            match looked {
                Ok((indexes, found)) => send(indexes, found),
                Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
                // The runtime is shutting down.
                Err(_) => {}
            }
        }
        let mut outcomes = Vec::with_capacity(messages.len());
        for (message, sending) in messages.iter().zip(sendings) {
            outcomes.push(match sending {
                Some(Ok(Sending { producer, answer })) => self.outcome(&producer, message, answer.await.ok()),
                Some(Err(error)) => Err(error),
                None => Err(lost()),
            });
        }
        outcomes
    }

    fn send(&self, message: &Outgoing, partitions: i32) -> Result<Sending, TransportError> {
        let producer = self.inner.producer();
        let to = partition(message.key.as_deref().unwrap_or_default(), partitions);
        match producer.send(message, to) {
            Ok(answer) => Ok(Sending { producer, answer }),
            Err(code) => Err(not_delivered(&message.topic, message.is_addressed, code)),
        }
    }

    fn outcome(
        &self,
        producer: &Arc<Producer>,
        message: &Outgoing,
        answer: Option<Result<(), RDKafkaErrorCode>>,
    ) -> Result<(), TransportError> {
        let code = match answer {
            Some(Ok(())) => return Ok(()),
            Some(Err(code)) => code,
            None => return Err(lost()),
        };
        if is_unknown_topic(code) {
            lock(&self.inner.spread).remove(&message.topic);
        }
        if producer.is_broken() || is_of_a_lost_producer(code) {
            self.replace(producer);
        }
        // The thread looks whether it is the cluster or the message.
        _ = self.doubts.try_send(());
        Err(not_delivered(&message.topic, message.is_addressed, code))
    }

    /// An idempotent producer that lost count of what the brokers have, or that they do not know any more, can send nothing more.
    fn replace(&self, broken: &Arc<Producer>) {
        let mut current = lock(&self.inner.producer);
        if !Arc::ptr_eq(&current, broken) {
            return;
        }
        match Producer::create(&self.inner.options, self.inner.reach.clone(), self.doubts.clone()) {
            Ok(producer) => {
                log::warn!("producer replaced");
                *current = producer;
            }
            Err(error) => log::warn!(%error, "producer not replaced"),
        }
    }
}

impl Inner {
    fn producer(&self) -> Arc<Producer> {
        Arc::clone(&lock(&self.producer))
    }

    /// By how many partitions the keys of a topic are spread that was found before.
    fn known(&self, topic: &str) -> Result<Option<i32>, TransportError> {
        self.reach.check()?;
        lock(&self.spread).of(topic)
    }

    /// Looks by how many partitions the keys of a topic are spread. The topic of an event is created, since it may have no
    /// receivers.
    async fn partitions_of(&self, topic: &str, is_addressed: bool) -> Result<i32, TransportError> {
        let limit = self.options.publish_timeout;
        let deadline = Instant::now() + limit;
        let found = timeout_at(deadline, self.find(topic)).await;
        let found = found.unwrap_or_else(|_| Err(too_late("publish", &format!("ask for the topic {topic}"), limit)));
        // An operator who permits the user to write, for example, makes the cluster accept the same message.
        let kind = |error: &TransportError| if error.kind() == Kind::Refused { Kind::Nacked } else { error.kind() };
        let count = match found.map_err(|error| again(&error, kind(&error)))? {
            Some(count) => count,
            None if is_addressed => return Err(topics::missing(topic)),
            None => {
                let created = timeout_at(deadline, topics::create(&self.options, topic, self.options.partitions)).await;
                let created = created.unwrap_or_else(|_| Err(topics::not_ready(topic, limit)));
                // The cluster answered when it was asked for the topic, so the other topics may be in order.
                let kind =
                    |error: &TransportError| if error.kind() == Kind::NoRoute { Kind::NoRoute } else { Kind::Nacked };
                created.map_err(|error| again(&error, kind(&error)))?
            }
        };
        Ok(lock(&self.spread).add(topic, count))
    }

    async fn find(&self, topic: &str) -> Result<Option<i32>, TransportError> {
        let (producer, asked, timeout) = (self.producer(), topic.to_owned(), self.options.connect_timeout);
        blocking(move || look_up(&producer, &asked, timeout)).await
    }

    /// Asks the cluster for the topics that are sent to.
    fn look(&self) {
        let producer = self.producer();
        let mut names = lock(&self.spread).topics();
        if names.is_empty() {
            names.push(ANY_TOPIC.to_owned());
        }
        for name in names {
            match look_up(&producer, &name, LOOK_TIMEOUT.min(self.options.connect_timeout)) {
                Ok(found) => {
                    if self.reach.found() {
                        log::info!("cluster reached again");
                    }
                    self.note(&name, found);
                }
                Err(error) if error.kind() == Kind::Unavailable => {
                    if self.reach.lost(error.to_string()) {
                        log::warn!(%error, "cluster lost");
                    }
                    return;
                }
                // The cluster answered.
                Err(error) => self.reach.failed(error.to_string()),
            }
        }
    }

    fn note(&self, topic: &str, found: Option<i32>) {
        if let Look::Changed(partitions) = lock(&self.spread).look(topic, found) {
            log::warn!(topic, partitions, ?found, "partitions changed, sending stopped until they are confirmed");
        }
    }
}

/// Looks at the cluster as long as there is a publisher. Its producer has a sender of `looks`, so the thread must not keep it.
fn look_until_the_end(publisher: &Weak<Inner>, reach: &Reach, looks: &Receiver<()>) {
    loop {
        let pause = if reach.is_lost() { LOOK_AGAIN_EVERY } else { LOOK_EVERY };
        if looks.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        let Some(publisher) = publisher.upgrade() else { return };
        publisher.look();
    }
}

/// The error of a look-up, as that of a message.
fn again(error: &TransportError, kind: Kind) -> TransportError {
    let text = error.to_string();
    let detail = text.split_once(": ").map_or(text.as_str(), |(_operation, detail)| detail);
    TransportError::new(kind, "publish", detail)
}

fn look_up(producer: &Producer, topic: &str, timeout: Duration) -> Result<Option<i32>, TransportError> {
    let Some(client) = producer.client() else { return Err(lost()) };
    topics::partitions(client.client(), topic, timeout)
        .map_err(|error| failed("publish", &format!("ask for the topic {topic}"), &error))
}

async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, TransportError> + Send + 'static,
) -> Result<T, TransportError> {
    let ended = |_| Err(TransportError::new(Kind::Unavailable, "connect", "the process is shutting down"));
    tokio::task::spawn_blocking(call).await.unwrap_or_else(ended)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::MockCluster;

    /// Its thread and its connections would stay for ever.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_dropped_publisher_is_released() {
        let cluster = MockCluster::start().unwrap();
        let publisher = Publisher::connect(cluster.options()).await.unwrap();
        let inner = Arc::downgrade(&publisher.inner);
        drop(publisher);
        while inner.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    }
}
