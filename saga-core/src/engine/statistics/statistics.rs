//! Counts what a runtime does.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::instance::WorkItem;
use crate::machine::Ending;
use crate::store::Store;

/// What this runtime has done since it started.
///
/// Later versions only add fields to its JSON:
///
/// ```
/// use saga_core::engine::Statistics;
///
/// assert_eq!(
///     serde_json::to_value(Statistics::default())?,
///     serde_json::json!({
///         "started": 0, "already_started": 0, "steps": 0, "undos": 0, "rejections": 0, "failures": 0,
///         "batches": 0, "batched": 0, "splits": 0,
///     })
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Sagas that were started. A start in the caller's transaction counts when
    /// [`committed`](crate::engine::UncommittedStart::committed) is called.
    pub started: u64,
    /// Starts whose key existed already, also those that were refused because the payload was another one.
    pub already_started: u64,
    /// Steps that were done.
    pub steps: u64,
    /// Steps that were undone.
    pub undos: u64,
    /// Attempts that were rejected.
    pub rejections: u64,
    /// Attempts that failed otherwise.
    pub failures: u64,
    /// Calls of batch steps with more than one input.
    pub batches: u64,
    /// The inputs of these calls.
    pub batched: u64,
    /// Calls of batch steps that failed as a whole and were made again in parts.
    pub splits: u64,
}

impl From<&Counters> for Statistics {
    fn from(counters: &Counters) -> Self {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Self {
            started: read(&counters.started),
            already_started: read(&counters.already_started),
            steps: read(&counters.steps),
            undos: read(&counters.undos),
            rejections: read(&counters.rejections),
            failures: read(&counters.failures),
            batches: read(&counters.batches),
            batched: read(&counters.batched),
            splits: read(&counters.splits),
        }
    }
}

/// The counters behind [`Statistics`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    started: AtomicU64,
    already_started: AtomicU64,
    steps: AtomicU64,
    undos: AtomicU64,
    rejections: AtomicU64,
    failures: AtomicU64,
    batches: AtomicU64,
    batched: AtomicU64,
    splits: AtomicU64,
}

impl Counters {
    pub(crate) fn count<S: Store>(&self, command: &WorkItem<S>, ending: &Ending) {
        let counter = match ending {
            Ending::Done if command.is_undo() => &self.undos,
            Ending::Done => &self.steps,
            Ending::Rejected(_) => &self.rejections,
            _ => &self.failures,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_done(&self, is_undo: bool) {
        let counter = if is_undo { &self.undos } else { &self.steps };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_start(&self, is_new: bool) {
        let counter = if is_new { &self.started } else { &self.already_started };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_batch(&self, inputs: usize) {
        if inputs > 1 {
            self.batches.fetch_add(1, Ordering::Relaxed);
            self.batched.fetch_add(inputs as u64, Ordering::Relaxed);
        }
    }

    pub(crate) fn count_split(&self) {
        self.splits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Statistics {
        self.into()
    }
}
