//! The steps of a saga that ran earlier in the same transaction.

use std::time::Duration;

use crate::engine::instance::WorkItem;
use crate::store::{Changes, NewWork, Store};

/// What the earlier steps of the saga in this transaction leave.
pub(crate) struct ChainedSteps<S: Store> {
    /// The command that was claimed.
    pub(super) claimed: Box<WorkItem<S>>,
    /// The changes to record for these steps.
    pub(super) changes: Changes,
    /// The work row of the present step. It is written only if the step does not run now.
    pub(super) row: NewWork,
}

/// A step that was done, for the statistics.
pub(crate) struct ChainedStep {
    pub(crate) name: &'static str,
    pub(crate) is_undo: bool,
    pub(crate) took: Duration,
    /// Whether it only took a semantic lock, and called no function.
    pub(crate) is_lock: bool,
}
