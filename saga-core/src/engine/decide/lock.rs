//! How a step asks for a lock, and how a step that takes a semantic lock ends.

use super::decider::Decider;
use super::wait::blocked;
use crate::engine::instance::{AttemptDetails, AttemptResult, WorkItem, lock_of};
use crate::machine::{Ending, Event, Failure, FailureKind, Next};
use crate::saga::{LONGEST, LockWait};
use crate::step::{LockedEntity, Rejection};
use crate::store::{Entity, LockAnswer, LockRequest, Store};
use crate::unwind::caught;

/// What the step asks the store for.
///
/// # Errors
/// Its stored input does not name entities, as an operator may have replaced it.
pub(crate) fn lock_request<S: Store>(command: &WorkItem<S>, wait: LockWait) -> Result<LockRequest, String> {
    let saga = &command.saga;
    let entities: Vec<Entity> = serde_json::from_slice(saga.input_of(command.step_index()))
        .map_err(|error| format!("its input does not name entities: {error}"))?;
    let entities = Entity::checked(entities)?;
    let of = (&saga.tenant, &saga.key);
    Ok(LockRequest::new(saga.id, of, command.step().name, entities, command.work, wait.within))
}

/// What the lock of the step is asked for with, before its function or its compensation is called.
///
/// # Errors
/// The closure of the step cannot name what it locks.
pub(crate) fn step_lock_request<S: Store>(command: &WorkItem<S>) -> Result<LockRequest, String> {
    let (saga, step) = (&command.saga, command.step_index());
    let name_entities = lock_of(command).ok_or("it has no lock")?;
    let entities = caught(|| name_entities(saga.input_of(step)))
        .unwrap_or_else(|panic| Err(format!("its closure panicked: {panic}")))
        .and_then(Entity::checked)
        .map_err(|problem| format!("what it locks cannot be said: {problem}"))?;
    let of = (&saga.tenant, &saga.key);
    Ok(LockRequest::of_step(saga.id, of, saga.doing(step).as_str(), entities, command.work, LONGEST))
}

/// What a step ends with that asked for a semantic lock; nothing if it waits, or if another process has the command.
pub(crate) fn lock_result<S: Store>(
    decider: &Decider<S>,
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
        Ok((request, LockAnswer::Granted(tokens))) => match decider.check_length(locked(request.entities, tokens)) {
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

/// The output of the step. Names and numbers always encode.
fn locked(entities: Vec<Entity>, tokens: Vec<u64>) -> Vec<u8> {
    let locked = entities.into_iter().zip(tokens).map(|(entity, token)| LockedEntity { entity, token });
    serde_json::to_vec(&locked.collect::<Vec<_>>()).unwrap_or_default()
}
