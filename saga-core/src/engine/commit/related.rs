//! Notifications between sub-sagas and their outer sagas.
//!
//! When a sub-saga ends, the command that waits for it falls due; when the outer saga starts compensating, the
//! commands that wait for its sub-sagas do. The store finds the rows, whichever process owns them. Correctness does
//! not depend on it: such a row falls due by itself as well.

use std::sync::Arc;
use std::time::Duration;

use super::changes;
use crate::engine::context::EngineContext;
use crate::engine::instance::SagaInstance;
use crate::engine::schedule::Scheduler;
use crate::key::{Key, Tenant};
use crate::log;
use crate::machine::{Phase, StepPhase};
use crate::saga::Definition;
use crate::store::{Postponed, Status, Store, StoreError, WorkKind, WorkStatus};

/// Whose commands are to look at their sagas again.
struct Waiting {
    tenant: Tenant,
    /// The saga that they are commands of.
    key: Key,
    /// Their steps.
    steps: Vec<String>,
    /// Whether those that undo them are wanted as well.
    or_undo: bool,
}

/// Makes the command due that waits for this saga, which has ended. For callers without a runtime.
pub(crate) async fn notify_parent<S: Store>(
    store: &S,
    tenant: &Tenant,
    key: &Key,
    definition: &Definition<S>,
    status: Status,
) -> bool {
    let parent = parent_of(key, definition, tenant).filter(|_| status.is_ended());
    match parent {
        Some(parent) => hurry(store, &parent).await.unwrap_or_default(),
        None => false,
    }
}

fn parent_of<S: Store>(key: &Key, definition: &Definition<S>, tenant: &Tenant) -> Option<Waiting> {
    let (key, step) = key.of_step().filter(|_| !definition.is_hosted())?;
    Some(Waiting { tenant: tenant.clone(), key, steps: vec![step.to_owned()], or_undo: true })
}

fn children_of<S: Store>(saga: &SagaInstance<S>) -> Option<Waiting> {
    if saga.state.is_paused() {
        // A paused saga does not compensate before it is resumed, and the resume makes the waiting rows due.
        return None;
    }
    let steps = saga.definition.shape.steps.iter().zip(&saga.state.steps);
    let begun = steps.filter(|(step, state)| step.child.is_some() && state.phase == StepPhase::Started);
    let steps: Vec<String> = begun.map(|(step, _)| step.name.to_owned()).collect();
    if steps.is_empty() {
        return None;
    }
    Some(Waiting { tenant: saga.tenant.clone(), key: saga.key.clone(), steps, or_undo: false })
}

/// Makes unclaimed commands due. Returns whether there were any.
async fn hurry<S: Store>(store: &S, waiting: &Waiting) -> Result<bool, StoreError> {
    let Some(stored) = store.saga_with_steps(&waiting.tenant, &waiting.key).await? else { return Ok(false) };
    let free = stored.work.iter().filter(|work| work.owner.is_none());
    let is_wanted = |work: &&WorkStatus| waiting.or_undo || work.kind == WorkKind::Do;
    let wanted = free.filter(is_wanted).filter(|work| waiting.steps.iter().any(|step| step == work.step.step()));
    let due: Vec<_> = wanted
        .map(|work| Postponed {
            work: work.work,
            due_in: Duration::ZERO,
            attempts: work.attempts,
            in_doubt: work.in_doubt,
            error: None,
        })
        .collect();
    if due.is_empty() {
        return Ok(false);
    }
    // A worker that has claimed one meanwhile reads the saga itself.
    let each = due.into_iter().map(changes::postpone);
    Ok(store.record(each.collect()).await?.iter().any(Result::is_ok))
}

/// Makes commands due that wait for a saga that moved.
pub(crate) struct RelatedSagas<S: Store> {
    ctx: Arc<EngineContext<S>>,
    scheduler: Arc<Scheduler<S>>,
}

impl<S: Store> RelatedSagas<S> {
    pub(crate) fn new(scheduler: Arc<Scheduler<S>>) -> Self {
        Self { ctx: Arc::clone(&scheduler.ctx), scheduler }
    }
}

impl<S: Store> RelatedSagas<S> {
    /// A saga moved: who waits for it, or does for it what is no longer wanted, looks again.
    pub(crate) fn notify_related(self: &Arc<Self>, saga: &SagaInstance<S>) {
        let waiting = match saga.state.phase {
            Phase::Running => None,
            Phase::Compensating => children_of(saga),
            Phase::Completed => parent_of(&saga.key, &saga.definition, &saga.tenant),
            // Where a person ended it so, those that run turn round.
            Phase::Compensated => parent_of(&saga.key, &saga.definition, &saga.tenant).or_else(|| children_of(saga)),
        };
        let Some(waiting) = waiting else { return };
        let (this, under_way) = (Arc::clone(self), self.ctx.lifecycle.enter());
        self.ctx.lifecycle.spawn(
            "family",
            Box::pin(async move {
                match hurry(&*this.ctx.store, &waiting).await {
                    Ok(true) => this.scheduler.announce_unclaimed(Duration::ZERO),
                    Ok(false) => {}
                    Err(error) => {
                        let (tenant, saga) = (waiting.tenant.as_str(), &waiting.key);
                        log::debug!(tenant, %saga, %error, "waiting saga not woken");
                    }
                }
                drop(under_way);
            }),
        );
    }
}
