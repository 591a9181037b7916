//! Where the next command of a saga may run.

use super::work_item::WorkItem;
use crate::engine::bulkhead::{ConcurrencyKey, QueueSlot};
use crate::store::Store;

/// Which place a next command may have in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextSlot {
    /// None: the work is left to the process that claims it.
    Nowhere,
    /// One that is free.
    Free,
    /// That of the command before it, or one that is free where it needs another one.
    Of {
        /// Where that command counts.
        seat: ConcurrencyKey,
        /// Whether it has a line on which a call can begin.
        has_line: bool,
    },
}

impl NextSlot {
    /// The place of this command goes to its successor.
    pub(crate) fn after<S: Store>(command: &WorkItem<S>) -> Self {
        let of = |place: &QueueSlot| Self::Of { seat: place.seat(), has_line: place.has_line() };
        command.slot.as_ref().map_or(Self::Nowhere, of)
    }
}

impl NextWork {
    /// For a decision that issues no command.
    pub(crate) fn none() -> Self {
        Self { ids: 0, slot: NextSlot::Nowhere }
    }
}

/// Where the next command goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextWork {
    /// The first of the ids for the rows of the next commands: as many as can follow at once.
    pub(crate) ids: i64,
    /// Whether this process may take it.
    pub(crate) slot: NextSlot,
}
