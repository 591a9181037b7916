//! What follows in other rows when a saga moves.
//!
//! When a sub-saga ends, the command that waits for it falls due. When a saga starts compensating, its commands that wait for
//! sub-sagas, for locks or for another attempt do. The store finds the rows, whichever process owns them. Correctness does
//! not depend on it: such a row falls due by itself as well.

use std::sync::Arc;
use std::time::Duration;

use super::called_off::{called_off, due_in, make_due};
use crate::engine::context::{EngineContext, Settings};
use crate::engine::instance::SagaInstance;
use crate::engine::schedule::Scheduler;
use crate::env::Environment;
use crate::key::{Key, Tenant};
use crate::log;
use crate::machine::{Phase, StepPhase};
use crate::store::{Postponed, Store, StoreError, WorkStatus};

/// Whose commands are to look at their sagas again.
enum Waiting<S: Store> {
    /// That of the outer saga, whose sub-saga ended.
    Outer {
        tenant: Tenant,
        key: Key,
        /// The step that waits.
        step: String,
    },
    /// Those of this saga, which compensates.
    Own {
        saga: Box<SagaInstance<S>>,
        /// Only those that wait for sub-sagas. The others keep the pauses between their attempts.
        only_children: bool,
    },
}

impl<S: Store> Waiting<S> {
    fn saga(&self) -> (&Tenant, &Key) {
        match self {
            Self::Outer { tenant, key, .. } => (tenant, key),
            Self::Own { saga, .. } => (&saga.tenant, &saga.key),
        }
    }

    /// The rows that are due now.
    fn due(&self, work: &[WorkStatus], settings: &Settings) -> Vec<Postponed> {
        match self {
            Self::Outer { step, .. } => {
                let waits = work.iter().filter(|row| row.owner.is_none() && row.step.step() == step);
                waits.map(|row| due_in(row, Duration::ZERO)).collect()
            }
            Self::Own { saga, only_children } => {
                let shape = &saga.definition.shape;
                let is_child =
                    |row: &WorkStatus| shape.position(row.step.step()).is_some_and(|base| shape.is_child(base));
                let wanted = work.iter().filter(|row| !only_children || is_child(row));
                called_off(wanted, saga, settings)
            }
        }
    }
}

/// Makes the command due that waits for this saga, which has ended. For callers without a runtime.
pub(crate) async fn notify_parent<S: Store>(
    store: &S,
    env: &dyn Environment,
    settings: &Settings,
    saga: &SagaInstance<S>,
) -> bool {
    match outer_of(saga).filter(|_| saga.state.status().is_ended()) {
        Some(outer) => hurry(store, env, &outer, settings).await.unwrap_or_default(),
        None => false,
    }
}

fn outer_of<S: Store>(saga: &SagaInstance<S>) -> Option<Waiting<S>> {
    let (key, step) = saga.key.of_step().filter(|_| !saga.definition.is_hosted())?;
    Some(Waiting::Outer { tenant: saga.tenant.clone(), key, step: step.to_owned() })
}

/// The commands of a saga that compensates: when it begins to do so all that wait, and later those whose sub-sagas may have begun
/// in the meantime. A paused saga does not compensate before it is resumed, and the resume makes the waiting rows due.
fn own_of<S: Store>(saga: &SagaInstance<S>, has_just_begun: bool) -> Option<Waiting<S>> {
    let (shape, state) = (&saga.definition.shape, &saga.state);
    let mut begun = (0..state.steps.len()).filter(|step| state.steps[*step].phase == StepPhase::Started);
    let is_any = begun.any(|step| has_just_begun || shape.is_child(state.base(step)));
    (is_any && !saga.state.is_paused())
        .then(|| Waiting::Own { saga: Box::new(saga.clone()), only_children: !has_just_begun })
}

/// Makes unclaimed commands due. Returns whether there were any.
async fn hurry<S: Store>(
    store: &S,
    env: &dyn Environment,
    waiting: &Waiting<S>,
    settings: &Settings,
) -> Result<bool, StoreError> {
    let (tenant, key) = waiting.saga();
    let Some(stored) = store.saga_with_steps(tenant, key).await? else { return Ok(false) };
    make_due(store, env, waiting.due(&stored.work, settings)).await
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
    pub(crate) fn notify_related(self: &Arc<Self>, saga: &SagaInstance<S>, has_just_begun: bool) {
        let waiting = match saga.state.phase {
            Phase::Running => None,
            Phase::Compensating => own_of(saga, has_just_begun),
            Phase::Completed => outer_of(saga),
            // Where a person ended it so, those that run turn round.
            Phase::Compensated => outer_of(saga).or_else(|| own_of(saga, has_just_begun)),
        };
        let Some(waiting) = waiting else { return };
        let (this, under_way) = (Arc::clone(self), self.ctx.lifecycle.enter());
        self.ctx.lifecycle.spawn(
            "family",
            Box::pin(async move {
                match hurry(&*this.ctx.store, &*this.ctx.env, &waiting, &this.ctx.settings).await {
                    Ok(true) => this.scheduler.announce_unclaimed(Duration::ZERO),
                    Ok(false) => {}
                    Err(error) => {
                        let (tenant, saga) = waiting.saga();
                        let tenant = tenant.as_str();
                        log::debug!(tenant, %saga, %error, "waiting saga not woken");
                    }
                }
                drop(under_way);
            }),
        );
    }
}
