use std::collections::BTreeSet;

use super::row::Write;
use super::table::Table;

/// An advisory lock of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Advisory {
    /// Of an entity.
    Entity(usize),
    /// Of all waits.
    Waits,
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A saga asks for its next lock.
    Ask,
    /// A saga that has waited as long as it may asks once more.
    GiveUp,
    /// A saga does all of its work in the transaction that starts it, or a step does its own. It takes its lock without waiting.
    Try,
    /// A saga begins, takes its first lock without waiting, and keeps it.
    Start,
    /// A saga ends, and with it its locks. So does the lock of a step with its result.
    End,
    /// The locks of a saga end, and it still has to be undone. Only a mistake does that.
    EndEarly,
    /// A process grants what a saga that has ended has let go. Only a mistake does that.
    HandOver,
}

impl Kind {
    /// Whether it takes its entities only if it need not wait for them.
    pub(super) fn only_tries(self) -> bool {
        matches!(self, Self::Try | Self::Start)
    }

    /// Whether it asks for a lock. Then it has no entity while it waits for another one.
    pub(super) fn asks(self) -> bool {
        matches!(self, Self::Ask | Self::GiveUp)
    }
}

/// What a transaction does next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It locks these, and then looks whether others have the entities or wait for them.
    Locking(Vec<Advisory>),
    /// It reads the rows, and decides what it writes.
    Deciding,
    /// It commits.
    Committing(Vec<Write>),
}

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The saga has the lock, with these tokens.
    Granted([u8; 2]),
    /// The saga waits.
    Waits,
    /// The saga does not wait any more, and has no lock.
    GaveUp,
}

/// A transaction that is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transaction {
    /// What it is for.
    pub kind: Kind,
    /// What it does next.
    pub phase: Phase,
    /// The entities that it is about.
    pub entities: Vec<usize>,
    /// Whether others have its entities or wait for them, once it has looked.
    pub has_met: Option<bool>,
    /// The advisory locks that it has.
    pub locked: BTreeSet<Advisory>,
    /// The rows as they were when it began.
    pub begun_with: Table,
    /// A token that was taken when it began.
    pub early_token: u8,
    /// The answer of a request, once it is decided.
    pub answer: Option<Answer>,
}
