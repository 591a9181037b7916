//! Handling a message that was stored.

use std::time::Duration;

use super::handle_error::HandleError;
use crate::engine::store_calls::RecordError;
use crate::store::{Changes, Condition, Message, StoreError, WorkRef};

/// A message that is handled now.
#[derive(Debug)]
pub(crate) struct InboundMessage {
    pub(crate) message: Message,
    /// Its row; none for one that came before.
    pub(crate) work: Option<WorkRef>,
    /// How long ago it was committed.
    pub(crate) age: Duration,
    pub(crate) attempts: u32,
    /// The service that it was received for.
    pub(crate) source: String,
}

impl InboundMessage {
    /// The changes with which the message has been handled.
    pub(crate) fn handled(&self, changes: Changes) -> Changes {
        let mut changes = changes;
        changes.finished.extend(self.work.map(|work| (work, Condition::Held)));
        changes
    }
}

/// A failing store is not the message's fault: the message waits, and no attempt is counted.
impl From<StoreError> for HandleError {
    fn from(error: StoreError) -> Self {
        Self::Later { why: error.to_string(), is_counted: false }
    }
}

impl From<RecordError> for HandleError {
    fn from(error: RecordError) -> Self {
        Self::Later { why: error.to_string(), is_counted: false }
    }
}

/// How long ago a message was committed; nothing where that lies ahead.
pub(crate) fn age(message: &Message, now: crate::store::Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now.0.saturating_sub(message.committed_at.0)).unwrap_or(0))
}
