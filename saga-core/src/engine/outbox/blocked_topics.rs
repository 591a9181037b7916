//! Topics whose messages could not be sent, so that each is warned of once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::log;
use crate::transport::TransportErrorKind;

/// How many topics are remembered. Further ones are not logged: replies to invented names must not cause warnings for
/// ever.
const TOPICS_MAX: usize = 1_000;

/// The topics whose messages could not be sent lately, so that each is warned of once and not for each of its messages.
#[derive(Debug, Default)]
pub(crate) struct BlockedTopics {
    is_any: AtomicBool,
    kinds: Mutex<BTreeMap<String, TransportErrorKind>>,
}

impl BlockedTopics {
    /// A message of this topic was not sent; answers whether that was not known yet.
    pub(crate) fn is_news(&self, topic: &str, kind: TransportErrorKind) -> bool {
        let mut kinds = self.lock();
        if kinds.len() >= TOPICS_MAX && !kinds.contains_key(topic) {
            return false;
        }
        self.is_any.store(true, Ordering::Release);
        kinds.insert(topic.to_owned(), kind) != Some(kind)
    }

    /// A message of this topic was sent.
    pub(crate) fn sent(&self, topic: &str) {
        // Nearly always there is nothing to forget.
        if !self.is_any.load(Ordering::Acquire) {
            return;
        }
        let mut kinds = self.lock();
        if kinds.remove(topic).is_some() {
            log::info!(topic, "topic sends again");
        }
        self.is_any.store(!kinds.is_empty(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, TransportErrorKind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockedTopics, TOPICS_MAX, TransportErrorKind};

    #[test]
    fn each_topic_is_news_once_until_it_is_sent_again() {
        let held = BlockedTopics::default();
        assert!(held.is_news("a", TransportErrorKind::NoRoute));
        assert!(!held.is_news("a", TransportErrorKind::NoRoute));
        assert!(held.is_news("a", TransportErrorKind::Nacked), "another reason is news");
        assert!(held.is_news("b", TransportErrorKind::NoRoute));
        held.sent("a");
        assert!(held.is_news("a", TransportErrorKind::Nacked));
        assert!(!held.is_news("b", TransportErrorKind::NoRoute));
    }

    #[test]
    fn topics_beyond_the_limit_are_no_news() {
        let held = BlockedTopics::default();
        let news = (0..TOPICS_MAX + 10).filter(|topic| held.is_news(&topic.to_string(), TransportErrorKind::NoRoute));
        assert_eq!(news.count(), TOPICS_MAX);
    }
}
