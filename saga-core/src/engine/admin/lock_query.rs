//! The semantic locks of all sagas, and those of one saga in its status.

use super::lock_status::{LockStatus, SemanticLockStatus, SemanticLocksFilter};
use super::outline::WaitKind;
use super::query::SagaQuery;
use super::status::SagaStatus;
use crate::engine::context::{RuntimeError, outside_step};
use crate::machine::StepPhase;
use crate::store::{LockFilter, Store};

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
        Ok(stored.iter().filter_map(SemanticLockStatus::of).collect())
    }

    /// Adds what the store knows of the locks of the saga, if a step of it has taken or asked for one.
    pub(super) async fn add_locks(&self, status: &mut SagaStatus) -> Result<(), RuntimeError> {
        let has_begun = |phase| !matches!(phase, StepPhase::Ready | StepPhase::NotTaken);
        let is_lock = |kind| kind == Some(WaitKind::SemanticLock);
        if !status.steps.iter().any(|step| is_lock(step.wait) && has_begun(step.phase)) {
            return Ok(());
        }
        let (tenant, saga) = (self.tenant.clone(), Some(status.summary.id));
        // A step takes one lock.
        let filter = LockFilter { tenant, saga, entity: None, after: None, limit: status.steps.len() };
        let stored = self.store.locks(&filter).await?;
        for step in status.steps.iter_mut().filter(|step| is_lock(step.wait)) {
            let lock = stored.iter().find(|lock| lock.name == step.step);
            step.lock = lock.and_then(LockStatus::of);
        }
        Ok(())
    }
}
