//! Ending a semantic lock of a saga that does nothing.

use super::control_error::{ControlError, until_applied};
use super::saga_control::SagaControl;
use crate::engine::admin::admin_context::{AdminContext, refused};
use crate::engine::admin::audit::AuditEntry;
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::instance::{AttemptDetails, SagaInstance};
use crate::key::{Key, StepId};
use crate::machine::{Effect, Event, Refused};
use crate::step::SemanticLock;
use crate::store::{Miss, Store};

impl<S: Store> SagaControl<S> {
    /// Ends the semantic lock `L` of a saga that is stuck or paused, and gives its entities to the next saga that waits for
    /// them, in the same commit.
    ///
    /// Without its lock the saga begins no step any more: a step that would begin is stuck instead. Its undos still run when
    /// it is cancelled, and may write what the next saga has locked, so decide about the saga first if you can.
    ///
    /// # Errors
    /// Those of every [action](Self); when the saga does not have the lock, is neither stuck nor paused, or a step of it is
    /// still under way.
    ///
    /// # Cancel safety
    /// When dropped, the lock was ended or not; the same call again is refused if it was.
    ///
    /// # Examples
    /// ```
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Entity, Outcome, Runtime, Saga, SemanticLock, StepError, saga_step};
    ///
    /// struct Credit;
    ///
    /// impl SemanticLock for Credit {
    ///     const NAME: &'static str = "credit";
    /// }
    ///
    /// #[saga_step]
    /// async fn take_order(_order: u32) -> Result<(), StepError> {
    ///     Ok(())
    /// }
    ///
    /// /// After the pivot there is no way back, so a rejection makes the saga stuck.
    /// #[saga_step]
    /// async fn print_label(order: u32) -> Result<(), StepError> {
    ///     if order == 1 { Err(StepError::reject("the printer is gone")) } else { Ok(()) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let order = Saga::named("order")
    ///     .input::<u32>()
    ///     .semantic_lock::<Credit, _>(|_: &u32| Entity::new("account", "ada"))
    ///     .step::<take_order>()
    ///     .pivot()
    ///     .step::<print_label>()
    ///     .build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&order).start().await?;
    /// let first = runtime.start(&order, "order-1", 1).await?;
    /// assert!(matches!(first.outcome().await?, Outcome::Stuck { .. }));
    ///
    /// let second = runtime.start(&order, "order-2", 2).await?;
    /// runtime.admin().actor("ann").control("order-1").release_lock::<Credit>("it stays stuck until Monday").await?;
    /// assert!(matches!(second.outcome().await?, Outcome::Completed { .. }));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release_lock<L: SemanticLock>(&self, reason: &str) -> Result<(), RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(&self.key)?;
        let entry = self.ctx.audit_entry("release-lock", reason);
        let entry = AuditEntry { step: Some(L::NAME.to_owned()), ..entry };
        if let Some(problem) = entry.problem() {
            return Err(refused(&key, problem));
        }
        let released = until_applied(|| try_release(&self.ctx, &key, self.seen, L::NAME, &entry)).await?;
        released.map_err(|(refusal, _)| refused(&key, refusal.to_string()))
    }
}

async fn try_release<S: Store>(
    ctx: &AdminContext<S>,
    key: &Key,
    seen: Option<u64>,
    name: &str,
    entry: &AuditEntry,
) -> Result<(), ControlError> {
    let stored = ctx.stored(key, seen).await?;
    let mut saga = ctx.instance(&stored)?;
    let step = saga.definition.shape.position(name).filter(|step| saga.definition.shape.is_lock(*step));
    let step = step.ok_or_else(|| refused(key, format!("it takes no semantic lock `{name}`")))?;
    if stored.work.iter().any(|row| is_done_elsewhere(&saga, &row.step)) {
        return Err(ControlError::Refused(Refused::UnderWay, stored.saga.status));
    }
    saga.state.keep_parked(|row| stored.work.iter().any(|work| work.owner.is_none() && work.work.id.0 == row));
    let next_work = ctx.next_work(&saga).await?;
    let decided = ctx.decider()?.decide(&mut saga, Event::Unlocked { step }, &AttemptDetails::default(), next_work);
    let mut pending = decided.map_err(|refusal| ControlError::Refused(refusal, stored.saga.status))?;
    pending.changes.history.push(entry.entry(saga.id));
    match ctx.commit(key, pending).await? {
        Ok(()) => Ok(()),
        Err(Miss::Saga(_) | Miss::NoSaga(_) | Miss::Work(_)) => Err(ControlError::Moved),
        Err(miss) => Err(refused(key, format!("the action did not apply: {miss:?}")).into()),
    }
}

/// Whether the step is a sub-saga or done by another service: it goes on while its row waits, also in a pause.
fn is_done_elsewhere<S: Store>(saga: &SagaInstance<S>, id: &StepId) -> bool {
    let shape = &saga.definition.shape;
    let Some(base) = shape.position(id.step()) else { return false };
    let step = saga.state.index_of(base, id.item()).unwrap_or(base);
    shape.is_child(base) || matches!(shape.effect(&saga.state, step), Effect::Remote { .. })
}
