//! What the clock tells apart.

use std::time::Duration;

/// How virtual time has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TimeStatistics {
    /// How often the clock has moved.
    pub jumps: u64,
    /// How often every runtime was made to poll before a jump.
    pub rounds: u64,
    /// How many calls of stores and transports were made.
    pub calls: u64,
}

/// What goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UnitId(pub(super) u64);

/// A sleep that is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SleepId(pub(super) u64);

/// Whether a sleep has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    NotYet,
    /// It was cut short.
    Early,
    AtEnd,
}

/// What a unit is, which says when it holds the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitKind {
    /// A task holds it while it is ready to run.
    Task,
    /// An external function holds it unless it awaits virtual time.
    Call,
    /// So does a function in a transaction.
    Transaction,
    /// A call of the store holds it until it has ended.
    Store,
    /// A caller that waits lets time pass, unless it is ready to run itself.
    Waiting,
}

/// What a sleep is to the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SleepKind {
    /// The clock stops at its end.
    Event,
    /// A step awaits it, and does not hold the clock meanwhile.
    OfStep,
    /// A test awaits it. It ends when everything else that is due by then was done.
    Advance,
    /// A task looks for work after it, or earlier: before the clock jumps. The clock stops when something is due.
    Look { due_at: Option<Duration> },
}
