//! Work rows: what is to be done.

use std::time::Duration;

use crate::key::{Key, StepId, Tenant};
use crate::store::{DefinitionId, MemberId, SagaId, Timestamp, WorkId};

/// The kind of a work row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// Do a step.
    Do,
    /// Undo a step.
    Undo,
    /// Check whether the saga has met its deadline. The row belongs to no step.
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
    /// The owner.
    pub owner: MemberId,
    /// How long it lasts from the time of the statement.
    pub ttl: Duration,
}

/// A work row as its owner knows it. It names the row only until another owner takes the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkRef {
    /// The row.
    pub id: WorkId,
    /// The epoch under which it was taken. A row is inserted with epoch 1.
    pub epoch: u64,
}

impl WorkRef {
    /// A row as it is inserted.
    pub(crate) const fn inserted(id: WorkId) -> Self {
        Self { id, epoch: 1 }
    }

    /// How often the row was claimed, or moved to another version, since it was inserted.
    pub(crate) const fn times_taken(self) -> u64 {
        self.epoch.saturating_sub(Self::inserted(self.id).epoch)
    }
}

/// A call's last progress report, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// Its number among the reports of the row.
    pub number: u64,
    /// When it was stored.
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
    /// The saga's tenant.
    pub tenant: Tenant,
    /// The saga's key.
    pub key: Key,
    /// What to do.
    pub kind: WorkKind,
    /// The step.
    pub step: StepId,
    /// The definition that knows the step.
    pub definition: DefinitionId,
    /// The input that a mapping made. `None` where the step gets the saga's own input.
    pub payload: Option<Vec<u8>>,
    /// The time from this statement until the row is due.
    pub due_in: Duration,
    /// Set where a worker of the inserting process runs the command at once.
    pub lease: Option<Lease>,
    /// Set where an attempt was made and failed before the row is inserted. Such a row has no lease.
    pub tried: Option<Tried>,
}

impl NewWork {
    /// A command that is due at once, without a lease and without an input of its own.
    pub(crate) fn new(
        id: WorkId,
        saga: SagaId,
        (tenant, key): (&Tenant, &Key),
        definition: &DefinitionId,
        kind: WorkKind,
        step: StepId,
    ) -> Self {
        Self {
            id,
            saga,
            tenant: tenant.clone(),
            key: key.clone(),
            kind,
            step,
            definition: definition.clone(),
            payload: None,
            due_in: Duration::ZERO,
            lease: None,
            tried: None,
        }
    }
}

/// An attempt that was made before its command was written down.
#[derive(Debug, Clone)]
pub struct Tried {
    /// Attempts so far.
    pub attempts: u32,
    /// The error of the last one.
    pub error: String,
}

/// A work row as it is shown.
#[derive(Debug, Clone)]
pub struct WorkStatus {
    /// The row, and the epoch that it has.
    pub work: WorkRef,
    /// What to do.
    pub kind: WorkKind,
    /// The step.
    pub step: StepId,
    /// Attempts that are written down.
    pub attempts: u32,
    /// Whether an attempt ended without a definite answer.
    pub in_doubt: bool,
    /// When it is due.
    pub due_at: Timestamp,
    /// The owner of the lease.
    pub owner: Option<MemberId>,
    /// Since when its attempts have failed.
    pub retrying_since: Option<Timestamp>,
    /// The error of the last failed attempt.
    pub error: Option<String>,
    /// The input that a mapping made. `None` where the step gets the saga's own input.
    pub payload: Option<Vec<u8>>,
    /// The last progress report.
    pub reported: Option<Reported>,
}
