//! The plain values of the contract.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

/// The id of a saga's row. [`Ids::reserve_ids`](crate::store::Ids::reserve_ids) hands it out; no id is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct SagaId(pub i64);

/// The id of a row of `work`. [`Ids::reserve_ids`](crate::store::Ids::reserve_ids) hands it out; no id is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkId(pub i64);

/// One life of one process, as the owner of leases. A process that restarts is another member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(pub i64);

/// The answer of [`Members::join`](crate::store::Members::join).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incarnation {
    /// The new member.
    pub member: MemberId,
    /// How many members were alive before it joined.
    pub others: u32,
}

/// The id of a message: the same each time that it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub Uuid);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The definition that a saga was started with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefinitionId {
    /// The definition's name.
    pub name: Arc<str>,
    /// The definition's version.
    pub version: u32,
}

impl fmt::Display for DefinitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} version {}", self.name, self.version)
    }
}

/// The status of a saga, as far as a store needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It runs forward.
    Running,
    /// It compensates.
    Compensating,
    /// Ended: every step is done.
    Completed,
    /// Ended: every step that took effect is undone.
    Compensated,
    /// It needs an operator. Nothing is lost.
    Stuck,
    /// An operator has paused it: no step of it begins until it is resumed.
    Paused,
}

impl Status {
    /// Every status, in the order in which a saga may pass them.
    pub const ALL: [Self; 6] =
        [Self::Running, Self::Compensating, Self::Completed, Self::Compensated, Self::Stuck, Self::Paused];

    /// The status as it is stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Compensating => "compensating",
            Self::Completed => "completed",
            Self::Compensated => "compensated",
            Self::Stuck => "stuck",
            Self::Paused => "paused",
        }
    }

    /// The status of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Whether the saga has ended. A stuck or paused one has not.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Compensated)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
