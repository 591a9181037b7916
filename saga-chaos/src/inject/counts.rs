use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What was really done, and not only planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Count {
    Kills,
    PostgresRestarts,
    BrokerRestarts,
    CutsInCommits,
    CutsInPublishes,
    CutsInAcknowledgements,
    CutsOutOfReach,
    Stops,
    ClockShifts,
    QueuesDeleted,
    MemoryAlarms,
    Copies,
}

/// How often each.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<Count, u64>>);

impl Counts {
    pub(crate) fn add(&self, count: Count) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(count).or_default() += 1;
    }

    pub(crate) fn of(&self, count: Count) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&count).copied().unwrap_or(0)
    }
}
