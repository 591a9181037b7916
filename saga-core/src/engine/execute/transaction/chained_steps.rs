//! What ran in a transaction before the present step of the same saga.

use std::time::Duration;

use crate::engine::instance::WorkItem;
use crate::store::{Changes, NewWork, Store};

/// What ran in this transaction before the present step of the same saga.
pub(crate) struct ChainedSteps<S: Store> {
    /// The command that was claimed.
    pub(super) claimed: Box<WorkItem<S>>,
    /// What is to be recorded for the steps that were done.
    pub(super) changes: Changes,
    /// The row of the present step, which is written only if the step is left for later.
    pub(super) row: NewWork,
}

/// A step that was done, for the figures.
pub(crate) struct ChainedStep {
    pub(crate) name: &'static str,
    pub(crate) is_undo: bool,
    pub(crate) took: Duration,
}
