//! Where the next command of a saga may run.

use super::work_item::WorkItem;
use crate::engine::bulkhead::{ConcurrencyKey, QueueSlot};
use crate::store::Store;

/// Which slot the next command may have in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextSlot {
    /// None: the work row stays unleased, for the process that claims it.
    Nowhere,
    /// A free one.
    Free,
    /// That of the command before it, or a free one if it has another concurrency key.
    Of {
        /// The concurrency key of the command before it.
        key: ConcurrencyKey,
        /// Whether the command before it has a permit.
        has_permit: bool,
    },
}

impl NextSlot {
    /// The successor may inherit the slot of this command.
    pub(crate) fn after<S: Store>(command: &WorkItem<S>) -> Self {
        let of = |slot: &QueueSlot| {
            if slot.is_inheritable() {
                Self::Of { key: slot.concurrency_key(), has_permit: slot.has_permit() }
            } else {
                Self::Free
            }
        };
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
