//! The semantic locks of sagas, as a query returns them.

use serde::Serialize;

use super::json;
use super::outline::WaitKind;
use super::query::SagaQuery;
use super::status::SagaStatus;
use crate::engine::context::{RuntimeError, outside_step};
use crate::key::Key;
use crate::machine::StepPhase;
use crate::store::{Entity, LOCKED_ENTITIES_MAX, LockFilter, LockState, Store, StoredLock, Timestamp};

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
    /// Its entities, and who has them.
    #[serde(flatten)]
    pub status: LockStatus,
}

/// The entities of a semantic lock, and who has them.
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
    fn of(stored: &StoredLock) -> Option<Self> {
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

impl<S: Store> SagaQuery<S> {
    /// The semantic locks that sagas have or wait for, in the order in which they were asked for. Behind the last one of a
    /// page, [`after`](SemanticLocksFilter::after) continues.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn semantic_locks(&self, filter: SemanticLocksFilter) -> Result<Vec<SemanticLockStatus>, RuntimeError> {
        outside_step()?;
        let SemanticLocksFilter { entity, after, limit } = filter;
        let (tenant, limit) = (self.tenant.clone(), limit.unwrap_or(100));
        let stored = self.store.locks(&LockFilter { tenant, saga: None, entity, after, limit }).await?;
        let status = |stored: &StoredLock| {
            let status = LockStatus::of(stored)?;
            let (number, key, lock) = (stored.number, stored.key.clone(), stored.name.clone());
            Some(SemanticLockStatus { number, key, lock, status })
        };
        Ok(stored.iter().filter_map(status).collect())
    }

    /// Adds what the store knows of the locks of the saga, if a step of it has taken or asked for one.
    pub(super) async fn add_locks(&self, status: &mut SagaStatus) -> Result<(), RuntimeError> {
        let has_begun = |phase| !matches!(phase, StepPhase::Ready | StepPhase::NotTaken);
        let is_lock = |kind| kind == Some(WaitKind::SemanticLock);
        if !status.steps.iter().any(|step| is_lock(step.wait) && has_begun(step.phase)) {
            return Ok(());
        }
        let (tenant, saga) = (self.tenant.clone(), Some(status.summary.id));
        let filter = LockFilter { tenant, saga, entity: None, after: None, limit: LOCKED_ENTITIES_MAX };
        let stored = self.store.locks(&filter).await?;
        for step in status.steps.iter_mut().filter(|step| is_lock(step.wait)) {
            let lock = stored.iter().find(|lock| lock.name == step.step);
            step.lock = lock.and_then(LockStatus::of);
        }
        Ok(())
    }
}
