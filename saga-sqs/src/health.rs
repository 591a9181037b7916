use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use saga_core::transport::{TransportError, TransportErrorKind};
use tokio::time::Instant;

/// In a FIFO queue SQS looks for messages among the first 120,000 only: behind them are groups that it does not see.
const SEEN_MAX: u64 = 120_000;
/// How long between two warnings that sending does not work: under throttling it works every other time.
const WARN_EVERY: Duration = Duration::from_mins(1);

/// The state of a transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqsHealth {
    /// What sends.
    pub publisher: PublisherHealth,
    /// The active subscriptions, in the order in which they were made.
    pub subscriptions: Vec<SubscriptionHealth>,
}

impl SqsHealth {
    /// Whether messages can be sent, each subscription receives, and no queue is so long that SQS does not see all its groups.
    pub fn is_healthy(&self) -> bool {
        let sees_all = |subscription: &SubscriptionHealth| subscription.depth.is_none_or(|depth| depth < SEEN_MAX);
        self.publisher.unavailable_for.is_none()
            && self.subscriptions.iter().all(|subscription| subscription.is_receiving && sees_all(subscription))
    }
}

/// The state of what sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublisherHealth {
    /// How long SQS and SNS could not be reached, throttled all requests, or accepted no credentials; `None` while they work.
    pub unavailable_for: Option<Duration>,
    /// The last error, also after it has passed.
    pub last_error: Option<String>,
}

/// The state of a subscription in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionHealth {
    /// The subscription's name.
    pub name: String,
    /// Whether the last request for messages succeeded.
    pub is_receiving: bool,
    /// How many messages this process has, and has not settled.
    pub unsettled: usize,
    /// How many messages are in the queue, also those that receivers have, as of the last look; `None` before the first. The
    /// number is approximate. Where there are more than 120,000, SQS hands out the messages of some keys only when others are
    /// settled.
    pub depth: Option<u64>,
    /// The last error, also after it has passed.
    pub last_error: Option<String>,
}

/// Whether messages can be sent, shared by what sends and the callers of `health`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reach(Arc<Mutex<Known>>);

/// What a failure means that is an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Whether messages could be sent until now, as far as it is known.
    pub(crate) begins: bool,
    /// Whether the log has to say it.
    pub(crate) is_news: bool,
}

#[derive(Debug, Default)]
struct Known {
    lost_at: Option<Instant>,
    /// When the log said last that sending does not work.
    warned_at: Option<Instant>,
    /// Whether that is the last thing that the log says of it.
    is_warned: bool,
    last_error: Option<String>,
}

impl Reach {
    /// A message was sent. Answers whether this is news.
    pub(crate) fn works(&self) -> bool {
        let mut known = self.lock();
        known.lost_at = None;
        mem::take(&mut known.is_warned)
    }

    /// The service answers, and sending is tried again: it may still be throttled.
    pub(crate) fn answers(&self) {
        self.lock().lost_at = None;
    }

    /// No message can be sent.
    pub(crate) fn lost(&self, error: String) -> Lost {
        let mut known = self.lock();
        known.last_error = Some(error);
        let begins = known.lost_at.is_none();
        known.lost_at.get_or_insert_with(Instant::now);
        let is_news = !known.is_warned && known.warned_at.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if is_news {
            known.warned_at = Some(Instant::now());
            known.is_warned = true;
        }
        Lost { begins, is_news }
    }

    pub(crate) fn failed(&self, error: String) {
        self.lock().last_error = Some(error);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lock().lost_at.is_some()
    }

    /// # Errors
    /// While no message can be sent.
    pub(crate) fn check(&self) -> Result<(), TransportError> {
        let known = self.lock();
        if known.lost_at.is_none() {
            return Ok(());
        }
        let why = known.last_error.clone().unwrap_or_else(|| "SQS cannot be reached".to_owned());
        Err(TransportError::new(TransportErrorKind::Unavailable, "publish", why))
    }

    pub(crate) fn read(&self) -> PublisherHealth {
        let known = self.lock();
        PublisherHealth {
            unavailable_for: known.lost_at.map(|lost_at| lost_at.elapsed()),
            last_error: known.last_error.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_news_once_a_minute_and_its_end_when_its_begin_was() {
        let reach = Reach::default();
        let lost = |begins, is_news| assert_eq!(reach.lost("throttled".into()), Lost { begins, is_news });
        assert!(!reach.works(), "no outage was told");
        lost(true, true);
        lost(false, false);
        reach.answers();
        assert!(!reach.is_lost());
        lost(true, false);
        assert!(reach.works());
        lost(true, false);
        assert!(!reach.works(), "this outage was not told");
        lost(true, false);
        tokio::time::advance(WARN_EVERY).await;
        lost(false, true);
        assert!(reach.works());
    }

    #[test]
    fn a_queue_whose_groups_are_not_all_seen_is_not_healthy() {
        let health = |depth, is_receiving, unavailable_for| {
            let publisher = PublisherHealth { unavailable_for, last_error: None };
            let subscription =
                SubscriptionHealth { name: "a".into(), is_receiving, unsettled: 0, depth, last_error: None };
            SqsHealth { publisher, subscriptions: vec![subscription] }.is_healthy()
        };
        assert!(health(None, true, None) && health(Some(SEEN_MAX - 1), true, None));
        assert!(!health(Some(SEEN_MAX), true, None));
        assert!(!health(None, false, None) && !health(None, true, Some(Duration::ZERO)));
    }
}
