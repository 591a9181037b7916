//! The locks of sagas and of their steps, as a query returns them.

use serde::Serialize;

use super::json;
use crate::key::Key;
use crate::store::{Entity, LockState, StoredLock, Timestamp};

/// Which locks a list has.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SemanticLocksFilter {
    /// Only those on this entity: semantic locks, or the locks of steps.
    pub entity: Option<(Entity, LockScope)>,
    /// Only those behind this number.
    pub after: Option<u64>,
    /// The most to list; by default a hundred.
    pub limit: Option<usize>,
}

impl SemanticLocksFilter {
    /// The semantic locks on an entity: the one that is granted, and behind it the sagas that wait, in their order.
    pub fn of(entity: Entity) -> Self {
        Self { entity: Some((entity, LockScope::Saga)), ..Self::default() }
    }

    /// The same of the locks that steps have for the time of their calls.
    pub fn of_steps(entity: Entity) -> Self {
        Self { entity: Some((entity, LockScope::Step)), ..Self::default() }
    }

    /// The entity as the store knows it.
    pub(in crate::engine::admin) fn stored_entity(&self) -> Option<Entity> {
        let (entity, scope) = self.entity.clone()?;
        Some(if scope == LockScope::Step { entity.of_step() } else { entity })
    }
}

/// What has a lock. Locks of sagas and locks of steps never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LockScope {
    /// A saga, until its last commit: a semantic lock.
    Saga,
    /// A step, until the commit of its result.
    Step,
}

/// A lock that a saga or a step of it has or waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SemanticLockStatus {
    /// Its number; the next page continues after it.
    pub number: u64,
    /// The key of the saga.
    pub key: Key,
    /// The name of the semantic lock, or of the step whose lock it is.
    pub lock: String,
    /// Its entities, and the sagas that it waits for.
    #[serde(flatten)]
    pub status: LockStatus,
}

impl SemanticLockStatus {
    pub(in crate::engine::admin) fn of(stored: &StoredLock) -> Option<Self> {
        let status = LockStatus::of(stored)?;
        let (number, key, lock) = (stored.number, stored.key.clone(), stored.name.clone());
        Some(Self { number, key, lock, status })
    }
}

/// The entities of a lock, and the sagas that it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LockStatus {
    /// Whether it is a semantic lock of the saga, or the lock of one step.
    pub scope: LockScope,
    /// Whether the lock is granted. If not, the saga waits for it.
    pub granted: bool,
    /// Its entities.
    pub entities: Vec<LockedStatus>,
    /// The sagas that it waits for, by their keys. Each has one of the entities, or waits in front of it.
    pub waits_for: Vec<Key>,
    /// Since when the saga has the lock, or waits for it.
    #[serde(serialize_with = "json::time")]
    pub since: Timestamp,
}

/// An entity of a lock.
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
    pub(in crate::engine::admin) fn of(stored: &StoredLock) -> Option<Self> {
        let granted = match stored.state {
            LockState::Granted => true,
            LockState::Waiting => false,
            LockState::TimedOut(_) | LockState::Deadlock(_) => return None,
        };
        let entities: Vec<(Entity, bool, Option<u64>)> = stored.entities.iter().map(named).collect();
        let is_of_step = entities.first().is_some_and(|(_, is_of_step, _)| *is_of_step);
        let saga_of = |owner: &Key| if is_of_step { owner.asked_for() } else { owner.clone() };
        Some(Self {
            scope: if is_of_step { LockScope::Step } else { LockScope::Saga },
            granted,
            waits_for: stored.waits_for.iter().map(saga_of).collect(),
            entities: entities.into_iter().map(|(entity, _, token)| LockedStatus { entity, token }).collect(),
            since: stored.granted_at.unwrap_or(stored.asked_at),
        })
    }
}

fn named((entity, token): &(Entity, Option<u64>)) -> (Entity, bool, Option<u64>) {
    let (entity, is_of_step) = entity.named();
    (entity, is_of_step, *token)
}
