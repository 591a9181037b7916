//! Hosted steps that no message has closed.

use std::time::Duration;

use super::{DefinitionId, SagaId, Timestamp};
use crate::key::{Key, Tenant};

/// Which hosted steps [`Purge::unclosed`](super::Purge::unclosed) lists.
#[derive(Debug, Clone)]
pub struct UnclosedFilter {
    /// The definitions of the steps.
    pub definitions: Vec<DefinitionId>,
    /// They ended at least so long ago, and were not listed for so long.
    pub interval: Duration,
    /// The most sagas to look at.
    pub limit: usize,
}

/// A hosted step that has ended, and has no date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclosedStep {
    /// Its tenant.
    pub tenant: Tenant,
    /// Its own key, `key>step`.
    pub key: Key,
    /// Its definition.
    pub definition: DefinitionId,
    /// The encoded state of the machine.
    pub state: Vec<u8>,
    /// How long ago it ended.
    pub ended_ago: Duration,
}

/// The answer of [`Purge::unclosed`](super::Purge::unclosed).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unclosed {
    /// The steps that were found.
    pub steps: Vec<UnclosedStep>,
    /// Whether the walk goes on behind the sagas that were looked at.
    pub more: bool,
}

/// A saga that a store has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSaga {
    /// Its key.
    pub key: Key,
    /// Whether only its tombstone is kept.
    pub is_tombstone: bool,
}

/// Where a walk through the sagas of a store is, as the store keeps it for the maintenance task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnclosedWalk {
    /// The last saga that was looked at, while a walk is under way.
    pub walked_to: Option<SagaId>,
    /// When the last walk ended.
    pub ended_at: Option<Timestamp>,
}

impl UnclosedWalk {
    /// Behind which saga the next part of a walk begins; nothing while the last walk is too short ago.
    pub fn next_part(&self, interval: Duration, now: Timestamp) -> Option<SagaId> {
        let interval = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX);
        let may_begin = || self.ended_at.is_none_or(|ended_at| ended_at.0.saturating_add(interval) <= now.0);
        self.walked_to.or_else(|| may_begin().then_some(SagaId(i64::MIN)))
    }

    /// The walk when the sagas up to `last` were looked at, which is none where there are no more.
    #[must_use]
    pub fn after(self, last: Option<SagaId>, now: Timestamp) -> Self {
        match last {
            Some(_) => Self { walked_to: last, ..self },
            None => Self { walked_to: None, ended_at: Some(now) },
        }
    }
}
