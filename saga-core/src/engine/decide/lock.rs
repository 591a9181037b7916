//! How a step that takes a semantic lock asks for it, how it ends, and which locks end with a decision.

use super::decider::Decider;
use super::wait::blocked;
use crate::engine::instance::{AttemptDetails, AttemptResult, SagaInstance, WorkItem};
use crate::machine::{Decision, Ending, Event, Failure, FailureKind, Next};
use crate::saga::LockWait;
use crate::step::{LockedEntity, Rejection};
use crate::store::{Entity, LockAnswer, LockRequest, Status, Store, Unlock};

/// What the step asks the store for.
///
/// # Errors
/// Its stored input does not name entities, as an operator may have replaced it.
pub(crate) fn lock_request<S: Store>(command: &WorkItem<S>, wait: LockWait) -> Result<LockRequest, String> {
    let saga = &command.saga;
    let entities: Vec<Entity> = serde_json::from_slice(saga.input_of(command.step_index()))
        .map_err(|error| format!("its input does not name entities: {error}"))?;
    Ok(LockRequest {
        tenant: saga.tenant.clone(),
        saga: saga.id,
        key: saga.key.clone(),
        owner: saga.key.outermost(),
        name: command.step().name.to_owned(),
        entities: Entity::checked(entities)?,
        work: command.work,
        within: wait.within,
    })
}

impl<S: Store> Decider<S> {
    /// What a step ends with that asked for a semantic lock; nothing if it waits, or if another process has the command.
    pub(crate) fn lock_result(
        &self,
        command: &WorkItem<S>,
        asked: Result<(LockRequest, LockAnswer), String>,
    ) -> Option<(AttemptResult, Next)> {
        let step = command.step_index();
        let rejected = |message: String| {
            let reason = Rejection::new(message);
            let failure = Failure { step, kind: FailureKind::Rejected, reason: reason.clone() };
            (None, Ending::Rejected(reason), Event::Rejected { step, failure })
        };
        let (output, ending, event) = match asked {
            Err(problem) => blocked(step, problem),
            Ok((request, LockAnswer::Granted(tokens))) => match self.check_length(locked(request.entities, tokens)) {
                Ok(output) => (Some(output), Ending::Done, Event::Done { step }),
                Err(problem) => blocked(step, format!("its tokens cannot be stored: {problem}")),
            },
            Ok((request, LockAnswer::TimedOut(holder))) => rejected(format!(
                "it waited {:?} for its semantic lock `{}`, and the saga `{holder}` was in front of it",
                request.within, request.name
            )),
            Ok((request, LockAnswer::Deadlock(with))) => {
                rejected(format!("deadlock with `{with}`: for `{}`, each waits for what the other has", request.name))
            }
            Ok((_, LockAnswer::Waits(_) | LockAnswer::Gone)) => return None,
        };
        let findings = AttemptDetails { output, attempts: 1, ..AttemptDetails::default() };
        Some((AttemptResult { ending, findings }, Next::Settled(event)))
    }
}

/// The output of the step. Names and numbers always encode.
fn locked(entities: Vec<Entity>, tokens: Vec<u64>) -> Vec<u8> {
    let locked = entities.into_iter().zip(tokens).map(|(entity, token)| LockedEntity { entity, token });
    serde_json::to_vec(&locked.collect::<Vec<_>>()).unwrap_or_default()
}

/// The semantic locks that end with a decision. All locks of a family end with the last commit of the outermost saga: its
/// sub-sagas may have to be undone until then.
pub(super) fn unlocked<S: Store>(saga: &SagaInstance<S>, decision: &Decision, status: Status) -> Vec<Unlock> {
    if status.is_ended() && saga.definition.takes_locks && saga.key.of_step().is_none() {
        return vec![Unlock::Owner(saga.tenant.clone(), saga.key.clone())];
    }
    let name = |step: &usize| saga.definition.steps.get(*step).map(|step| step.name.to_owned());
    let names = decision.released.iter().filter_map(name);
    names.map(|name| Unlock::Lock(saga.tenant.clone(), saga.id, name)).collect()
}
