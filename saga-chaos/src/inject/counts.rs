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
    Overloads,
    /// The most calls that waited for their turn in an overload.
    OverloadDepth,
    PartitionsShort,
    PartitionsLong,
    StderrsClosed,
    FullTables,
    FullBrokerDisks,
    FullLogs,
    FullDisksLeftOut,
    FullQueues,
    /// Faults that were there for as long as a machine under load may take, and that nothing ran into.
    Unmet,
    /// The most messages that were refused at a time by a full queue.
    Refused,
    Copies,
    MalformedMessages,
    /// Orders whose purge was refused since a dead letter about them was open.
    PurgesHeldUp,
}

/// How often each.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<Count, u64>>);

impl Counts {
    pub(crate) fn add(&self, count: Count) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(count).or_default() += 1;
    }

    /// Counts what is the most of several.
    pub(crate) fn raise(&self, count: Count, value: u64) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let most = counts.entry(count).or_default();
        *most = value.max(*most);
    }

    pub(crate) fn of(&self, count: Count) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&count).copied().unwrap_or(0)
    }
}
