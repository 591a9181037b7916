//! Answers that came after their calls had ended.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::fate::{Fate, Identity};

/// How many answers are remembered until their messages are sent again.
const ANSWERS_MAX: usize = 10_000;
/// For how long an answer is remembered. A relay sends a message without an answer again within a minute. A later call with the same
/// id may be deliberate, for example that of a coordinator that got no reply to its command, and has to deliver it again.
const ANSWER_TTL: Duration = Duration::from_mins(1);

/// What became of messages that were in doubt.
#[derive(Debug, Default)]
pub(crate) struct Settled(HashMap<Identity, Answer>);

#[derive(Debug)]
struct Answer {
    fate: Fate,
    at: Instant,
}

impl Answer {
    fn is_recent(&self) -> bool {
        self.at.elapsed() < ANSWER_TTL
    }
}

impl Settled {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, identity: &Identity) -> bool {
        self.0.get(identity).is_some_and(Answer::is_recent)
    }

    /// The answer to a message that is sent again. It is the answer to one call only.
    pub(crate) fn take(&mut self, identity: &Identity) -> Option<Fate> {
        self.0.remove(identity).filter(Answer::is_recent).map(|answer| answer.fate)
    }

    pub(crate) fn insert(&mut self, identity: Identity, fate: Fate) {
        if self.0.len() >= ANSWERS_MAX {
            self.0.retain(|_, answer| answer.is_recent());
        }
        // More than there is room for are sent again, and delivered twice.
        if self.0.len() >= ANSWERS_MAX {
            self.0.clear();
        }
        self.0.insert(identity, Answer { fate, at: Instant::now() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(id: usize) -> Identity {
        (id.to_string(), "orders".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn late_answer_is_for_one_call() {
        let mut settled = Settled::default();
        settled.insert(identity(1), Fate::Confirmed);
        assert!(settled.contains(&identity(1)));
        assert!(matches!(settled.take(&identity(1)), Some(Fate::Confirmed)));
        assert!(settled.take(&identity(1)).is_none(), "T-PUB-4: the same id is sent again");
    }

    /// T-PUB-4: the channel sends a message again if its last confirmation is older than a minute.
    #[tokio::test(start_paused = true)]
    async fn late_answer_expires() {
        let mut settled = Settled::default();
        settled.insert(identity(1), Fate::Confirmed);
        tokio::time::advance(ANSWER_TTL).await;
        assert!(!settled.contains(&identity(1)));
        assert!(settled.take(&identity(1)).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_limited_and_the_recent_ones_stay() {
        let mut settled = Settled::default();
        (1..ANSWERS_MAX).for_each(|id| settled.insert(identity(id), Fate::Confirmed));
        tokio::time::advance(ANSWER_TTL).await;
        settled.insert(identity(0), Fate::Confirmed);
        settled.insert(identity(1), Fate::Confirmed);
        assert_eq!(settled.0.len(), 2);
        (2..=ANSWERS_MAX).for_each(|id| settled.insert(identity(id), Fate::Confirmed));
        assert!(settled.0.len() <= ANSWERS_MAX);
    }
}
