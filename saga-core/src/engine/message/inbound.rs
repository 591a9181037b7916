//! A received message, while it is handled.

use std::time::Duration;

use super::handle_error::HandleError;
use crate::engine::store_calls::RecordError;
use crate::store::{Changes, Condition, Message, StoreError, StoreErrorKind, WorkRef};

/// A received message, while it is handled.
#[derive(Debug)]
pub(crate) struct InboundMessage {
    pub(crate) message: Message,
    /// Its work row; `None` on the fast path, and for a duplicate.
    pub(crate) work: Option<WorkRef>,
    /// How long ago it was committed.
    pub(crate) age: Duration,
    /// How many attempts failed.
    pub(crate) attempts: u32,
    /// Whether a process ended while it had the message.
    pub(crate) is_recovered: bool,
    /// The service that it was received for.
    pub(crate) source: String,
}

impl InboundMessage {
    /// A message that was not tried before.
    pub(crate) fn new(message: Message, work: Option<WorkRef>, age: Duration, source: String) -> Self {
        Self { message, work, age, attempts: 0, is_recovered: false, source }
    }

    /// The same message, after these attempts.
    pub(crate) fn tried(self, attempts: u32, is_recovered: bool) -> Self {
        Self { attempts, is_recovered, ..self }
    }

    /// How many attempts it may have had, with the one that ended with its process. That one counts only until an attempt has ended
    /// without that: otherwise each claim of the row would count it.
    pub(crate) fn attempts_max(&self) -> u32 {
        self.attempts.saturating_add(u32::from(self.is_recovered))
    }

    /// The changes, together with the end of the message.
    pub(crate) fn handled(&self, changes: Changes) -> Changes {
        let mut changes = changes;
        changes.finished.extend(self.work.map(|work| (work, Condition::Held)));
        changes
    }
}

/// A failing store is not the fault of the message: no attempt is counted. A row that cannot be read stays so.
impl From<StoreError> for HandleError {
    fn from(error: StoreError) -> Self {
        Self::Later { why: error.to_string(), is_counted: error.kind() == StoreErrorKind::Corrupt }
    }
}

impl From<RecordError> for HandleError {
    fn from(error: RecordError) -> Self {
        Self::Later { why: error.to_string(), is_counted: false }
    }
}

/// How long ago a message was committed; zero if that is in the future.
pub(crate) fn age(message: &Message, now: crate::store::Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now.0.saturating_sub(message.committed_at.0)).unwrap_or(0))
}
