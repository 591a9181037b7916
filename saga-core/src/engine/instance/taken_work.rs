//! What is known of a command that a worker took, should the worker panic.

use super::work_item::WorkItem;
use crate::store::{ClaimedWork, Store, WorkRef};

/// What is known of a command that a worker took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakenWork {
    pub(crate) work: WorkRef,
    pub(crate) attempts: u32,
    /// Whether its effect may have happened outside when the worker panics.
    pub(crate) in_doubt: bool,
}

impl TakenWork {
    pub(crate) fn of<S: Store>(command: &WorkItem<S>) -> Self {
        let in_doubt = command.in_doubt || command.effect().is_outside();
        Self { work: command.work, attempts: command.attempts, in_doubt }
    }
}

impl TakenWork {
    /// A command that was just claimed, and has not begun.
    pub(crate) fn claimed(claimed: &ClaimedWork) -> Self {
        Self { work: claimed.work, attempts: claimed.attempts, in_doubt: claimed.in_doubt || claimed.recovered }
    }
}
