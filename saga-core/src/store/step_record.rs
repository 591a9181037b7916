//! Step records: what became of each step.

use std::time::Duration;

use super::Timestamp;
use crate::key::StepId;

/// The outcome of a step, as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordedOutcome {
    /// It took effect, once.
    Done,
    /// A definite business failure: it had no effect.
    Rejected,
    /// A transactional step out of attempts: it had no effect.
    Failed,
    /// An external step that may have happened.
    Unknown,
    /// It has a tombstone: it never ran, and never will.
    Cancelled,
    /// An operator went past it.
    Skipped,
}

impl RecordedOutcome {
    const NAMES: [(Self, &'static str); 6] = [
        (Self::Done, "done"),
        (Self::Rejected, "rejected"),
        (Self::Failed, "failed"),
        (Self::Unknown, "unknown"),
        (Self::Cancelled, "cancelled"),
        (Self::Skipped, "skipped"),
    ];

    /// The outcome as it is stored and shown.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(outcome, _)| *outcome == self).map_or("", |(_, name)| name)
    }

    /// The outcome of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, name)| *name == text).map(|(outcome, _)| *outcome)
    }
}

/// A step record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRecord {
    /// The step.
    pub step: StepId,
    /// The outcome.
    pub outcome: RecordedOutcome,
    /// Its encoded output.
    pub output: Option<Vec<u8>>,
    /// The error if it was not done, as JSON.
    pub error: Option<Vec<u8>>,
    /// The input that a mapping made. `None` where the step got the saga's own input.
    pub input: Option<Vec<u8>>,
    /// Its position in the order in which the saga's steps were recorded.
    pub position: u32,
    /// How many attempts it took.
    pub attempts: u32,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// How long the last attempt took.
    pub took: Duration,
}
