use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use saga_core::transport::{TransportError, TransportErrorKind};
use tokio::time::Instant;

/// The state of a transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaHealth {
    /// What sends.
    pub publisher: PublisherHealth,
    /// The active subscriptions, by their names.
    pub subscriptions: Vec<SubscriptionHealth>,
}

impl KafkaHealth {
    /// Whether messages can be sent, no topic has more partitions than before, and each subscription is in its group.
    pub fn is_healthy(&self) -> bool {
        self.publisher.unreachable_for.is_none()
            && self.publisher.changed_topics.is_empty()
            && self.subscriptions.iter().all(|subscription| subscription.is_joined)
    }
}

/// The state of what sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublisherHealth {
    /// How long no broker has answered; `None` while one does.
    pub unreachable_for: Option<Duration>,
    /// The Kafka topics whose number of partitions changed. Nothing is sent to them until the change is confirmed.
    pub changed_topics: Vec<String>,
    /// The last error, also after the cluster could be reached again.
    pub last_error: Option<String>,
}

/// The state of a subscription in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionHealth {
    /// The subscription's name.
    pub name: String,
    /// Whether it is a member of its consumer group. A member may have no partition.
    pub is_joined: bool,
    /// How many partitions it has.
    pub partitions: usize,
    /// How many records of these partitions are not settled, as of the last look; `None` before the first.
    pub lag: Option<u64>,
    /// How often the consumer was built anew, since it was lost or received nothing although records waited.
    pub rebuilds: u32,
    /// The last error, also after it has passed.
    pub last_error: Option<String>,
}

/// Whether the cluster can be reached, shared by what sends and the callers of `health`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reach(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    lost_at: Option<Instant>,
    last_error: Option<String>,
}

impl Reach {
    pub(crate) fn found(&self) -> bool {
        self.lock().lost_at.take().is_some()
    }

    /// Answers whether this is news.
    pub(crate) fn lost(&self, error: String) -> bool {
        let mut known = self.lock();
        known.last_error = Some(error);
        let is_news = known.lost_at.is_none();
        known.lost_at.get_or_insert_with(Instant::now);
        is_news
    }

    pub(crate) fn failed(&self, error: String) {
        self.lock().last_error = Some(error);
    }

    /// Whether there is a last error.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock().last_error.is_some()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lock().lost_at.is_some()
    }

    /// # Errors
    /// While no broker can be reached.
    pub(crate) fn check(&self) -> Result<(), TransportError> {
        let known = self.lock();
        if known.lost_at.is_none() {
            return Ok(());
        }
        let why = known.last_error.clone().unwrap_or_else(|| "no broker can be reached".to_owned());
        Err(TransportError::new(TransportErrorKind::Unavailable, "publish", why))
    }

    pub(crate) fn read(&self, changed_topics: Vec<String>) -> PublisherHealth {
        let known = self.lock();
        PublisherHealth {
            unreachable_for: known.lost_at.map(|lost_at| lost_at.elapsed()),
            changed_topics,
            last_error: known.last_error.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
