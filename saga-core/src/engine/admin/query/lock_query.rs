//! The locks of all sagas, and those of one saga in its status.

use super::lock_status::{LockStatus, SemanticLockStatus, SemanticLocksFilter};
use super::outline::{Outline, WaitKind};
use super::query::SagaQuery;
use super::status::SagaStatus;
use super::step_status::StepStatus;
use crate::engine::context::{RuntimeError, outside_step};
use crate::machine::StepPhase;
use crate::store::{LockFilter, Store};

impl<S: Store> SagaQuery<S> {
    /// The locks that sagas and their steps have or wait for, in the order in which they were asked for. Behind the last one of a
    /// page, [`after`](SemanticLocksFilter::after) continues.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn semantic_locks(&self, filter: SemanticLocksFilter) -> Result<Vec<SemanticLockStatus>, RuntimeError> {
        outside_step()?;
        let entity = filter.stored_entity();
        let SemanticLocksFilter { after, limit, .. } = filter;
        let (tenant, limit) = (self.tenant.clone(), limit.unwrap_or(100));
        let stored = self.store.locks(&LockFilter { tenant, saga: None, entity, after, limit }).await?;
        Ok(stored.iter().filter_map(SemanticLockStatus::of).collect())
    }

    /// Adds what the store knows of the locks of the saga, if a step of it may have taken or asked for one.
    pub(in crate::engine::admin) async fn add_locks(
        &self,
        status: &mut SagaStatus,
        outline: &Outline,
    ) -> Result<(), RuntimeError> {
        if !status.steps.iter().any(|step| may_have_lock(step, outline)) {
            return Ok(());
        }
        let (tenant, saga) = (self.tenant.clone(), Some(status.summary.id));
        // A step takes one lock.
        let filter = LockFilter { tenant, saga, entity: None, after: None, limit: status.steps.len() };
        let stored = self.store.locks(&filter).await?;
        for step in &mut status.steps {
            if let Some(lock) = stored.iter().find(|lock| lock.name == step.step).and_then(LockStatus::of) {
                step.set_lock(lock);
            }
        }
        Ok(())
    }
}

fn may_have_lock(step: &StepStatus, outline: &Outline) -> bool {
    match step.phase {
        StepPhase::Ready | StepPhase::NotTaken => false,
        _ if step.wait == Some(WaitKind::SemanticLock) => true,
        StepPhase::Started | StepPhase::Undoing => outline.locks_calls_of(&step.step),
        _ => false,
    }
}
