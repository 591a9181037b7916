//! The history of a saga.

use crate::key::StepId;
use crate::store::SagaId;

/// Something that happened to a saga and has no step record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The saga.
    pub saga: SagaId,
    /// The step, if the entry is about one.
    pub step: Option<StepId>,
    /// The kind of the event.
    pub kind: HistoryKind,
    /// The attempt, if the entry is about one.
    pub attempt: u32,
    /// A sentence for people.
    pub detail: String,
}

/// The kind of a history entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HistoryKind {
    /// An attempt failed.
    AttemptFailed,
    /// The saga needs a person.
    Stuck,
    /// An operator acted.
    Operator,
    /// A success came in after the decision.
    Late,
    /// The saga was migrated to another version of its definition.
    Migrated,
    /// The saga's deadline passed.
    Deadline,
    /// A message from outside arrived.
    Signal,
}

impl HistoryKind {
    const NAMES: [(Self, &'static str); 7] = [
        (Self::AttemptFailed, "attempt-failed"),
        (Self::Stuck, "stuck"),
        (Self::Operator, "operator"),
        (Self::Late, "late"),
        (Self::Migrated, "migrated"),
        (Self::Deadline, "deadline"),
        (Self::Signal, "signal"),
    ];

    /// The kind as it is written down and shown.
    pub fn as_str(self) -> &'static str {
        // A match would be complete by itself, but only a list can be read backwards.
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// The kind of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, name)| *name == text).map(|(kind, _)| *kind)
    }
}
