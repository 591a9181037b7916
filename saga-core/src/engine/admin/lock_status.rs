//! The semantic locks of sagas, as a query returns them.

use serde::Serialize;

use super::json;
use crate::key::Key;
use crate::store::{Entity, LockState, StoredLock, Timestamp};

/// Which semantic locks a list has.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SemanticLocksFilter {
    /// Only those on this entity.
    pub entity: Option<Entity>,
    /// Only those behind this number.
    pub after: Option<u64>,
    /// The most to list; by default a hundred.
    pub limit: Option<usize>,
}

impl SemanticLocksFilter {
    /// The locks on an entity: the one that is granted, and behind it the sagas that wait, in their order.
    pub fn of(entity: Entity) -> Self {
        Self { entity: Some(entity), ..Self::default() }
    }
}

/// A semantic lock that a saga has or waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SemanticLockStatus {
    /// Its number; the next page continues after it.
    pub number: u64,
    /// The key of the saga.
    pub key: Key,
    /// The name of the lock.
    pub lock: String,
    /// Its entities, and the sagas that it waits for.
    #[serde(flatten)]
    pub status: LockStatus,
}

impl SemanticLockStatus {
    pub(super) fn of(stored: &StoredLock) -> Option<Self> {
        let status = LockStatus::of(stored)?;
        let (number, key, lock) = (stored.number, stored.key.clone(), stored.name.clone());
        Some(Self { number, key, lock, status })
    }
}

/// The entities of a semantic lock, and the sagas that it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LockStatus {
    /// Whether the saga has the lock. If not, it waits for it.
    pub granted: bool,
    /// Its entities.
    pub entities: Vec<LockedStatus>,
    /// The sagas that it waits for, by their keys. Each has one of the entities, or waits in front of it.
    pub waits_for: Vec<Key>,
    /// Since when the saga has the lock, or waits for it.
    #[serde(serialize_with = "json::time")]
    pub since: Timestamp,
}

/// An entity of a semantic lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LockedStatus {
    /// The entity.
    #[serde(flatten)]
    pub entity: Entity,
    /// Its fencing token, if the lock is granted.
    pub token: Option<u64>,
}

impl LockStatus {
    pub(super) fn of(stored: &StoredLock) -> Option<Self> {
        let granted = match stored.state {
            LockState::Granted => true,
            LockState::Waiting => false,
            LockState::TimedOut(_) | LockState::Deadlock(_) => return None,
        };
        let entities = stored.entities.iter();
        Some(Self {
            granted,
            entities: entities.map(|(entity, token)| LockedStatus { entity: entity.clone(), token: *token }).collect(),
            waits_for: stored.waits_for.clone(),
            since: stored.granted_at.unwrap_or(stored.asked_at),
        })
    }
}
