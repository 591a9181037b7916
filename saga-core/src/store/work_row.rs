//! Work rows: what is to be done.

use std::time::Duration;

use super::{DefinitionId, MemberId, SagaId, Timestamp, WorkId};
use crate::key::{Key, StepId, Tenant};

/// What a work row asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// Do a step.
    Do,
    /// Undo a step.
    Undo,
    /// Look whether the saga is done in time. Its row is of no step.
    Deadline,
}

impl WorkKind {
    /// The kind as it is written down and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Do => "do",
            Self::Undo => "undo",
            Self::Deadline => "deadline",
        }
    }

    /// The kind of that name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Do, Self::Undo, Self::Deadline].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A lease to be given, or that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Who owns it.
    pub owner: MemberId,
    /// How long it lasts from the moment of the statement.
    pub ttl: Duration,
}

/// A work row as an owner knows it. It names the row only as long as nobody else took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkRef {
    /// The row.
    pub id: WorkId,
    /// The epoch under which it was taken. A row is inserted with epoch 1.
    pub epoch: u64,
}

/// What a call reported of how far it is, as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// Its number among the reports of the row.
    pub number: u64,
    /// When it was kept.
    pub at: Timestamp,
    /// The encoded report.
    pub progress: Vec<u8>,
}

/// A command, inserted with epoch 1.
#[derive(Debug, Clone)]
pub struct NewWork {
    /// The row's id.
    pub id: WorkId,
    /// The saga.
    pub saga: SagaId,
    /// Whose saga it is.
    pub tenant: Tenant,
    /// The saga's key.
    pub key: Key,
    /// What it asks for.
    pub kind: WorkKind,
    /// Which step.
    pub step: StepId,
    /// The definition that knows the step.
    pub definition: DefinitionId,
    /// The input that a mapping gave; nothing where the saga's own input is the step's.
    pub payload: Option<Vec<u8>>,
    /// How long from the statement until it is due.
    pub due_in: Duration,
    /// Set where the command goes straight to a worker of the process that inserts it.
    pub lease: Option<Lease>,
    /// Set where an attempt was made, and failed, before the row is inserted. Such a row has no lease.
    pub tried: Option<Tried>,
}

/// An attempt that was made before its command was written down.
#[derive(Debug, Clone)]
pub struct Tried {
    /// Attempts so far.
    pub attempts: u32,
    /// What the last one said.
    pub error: String,
}

/// A work row as it is shown.
#[derive(Debug, Clone)]
pub struct WorkStatus {
    /// The row, and the epoch that it has.
    pub work: WorkRef,
    /// What it asks for.
    pub kind: WorkKind,
    /// Which step.
    pub step: StepId,
    /// Attempts that are written down.
    pub attempts: u32,
    /// Whether an attempt ended without a definite answer.
    pub in_doubt: bool,
    /// When it is due.
    pub due_at: Timestamp,
    /// Who has leased it.
    pub owner: Option<MemberId>,
    /// Since when its attempts have failed.
    pub retrying_since: Option<Timestamp>,
    /// What the last failed attempt said.
    pub error: Option<String>,
    /// The input that a mapping gave, where the saga's own input is not the step's.
    pub payload: Option<Vec<u8>>,
    /// What a call reported last.
    pub reported: Option<Reported>,
}
