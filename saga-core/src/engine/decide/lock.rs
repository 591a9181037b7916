//! How a step asks for a lock, and how a step that takes a semantic lock ends.

use std::sync::Arc;

use super::decider::Decider;
use super::wait::{blocked, ended};
use crate::engine::instance::{AttemptResult, SagaInstance, WorkItem, lock_of};
use crate::machine::{Command, Effect, Ending, Event, Failure, FailureKind, Next};
use crate::saga::{Idle, LONGEST, LockWait, LockedOf, StepRun};
use crate::step::{LockedEntity, Rejection};
use crate::store::{Entity, LockAnswer, LockRequest, Store, WantedLock, WorkRef};
use crate::unwind::caught;

/// How many locks of later steps a transaction takes for a saga, at most.
const FOLLOWING_MAX: usize = 8;

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
    let name_entities = lock_of(command).ok_or("it has no lock")?;
    request_of_step(&command.saga, command.step_index(), name_entities, command.work)
}

/// What the transaction of the step takes: the lock of the step, or the semantic lock that the step takes, and the locks of the
/// steps that may follow in the transaction, as far as their inputs are known. `steps_max` is how many steps of a saga share a transaction.
///
/// # Errors
/// The closure of the step cannot name what it locks.
pub(crate) fn wanted_locks<S: Store>(command: &WorkItem<S>, steps_max: usize) -> Result<Vec<Arc<WantedLock>>, String> {
    let mut wanted = Vec::new();
    if let StepRun::Idle(Idle::Lock(wait)) = &command.step().run {
        wanted.push(Arc::new(WantedLock { request: lock_request(command, *wait)?, is_required: true }));
    }
    if lock_of(command).is_some() {
        wanted.push(Arc::new(WantedLock { request: step_lock_request(command)?, is_required: true }));
    }
    let (saga, steps) = (&command.saga, &command.saga.definition.steps);
    if command.is_undo() || command.recovered || !command.chains || saga.definition.width > 1 {
        return Ok(wanted);
    }
    let is_chained =
        |step: &usize| saga.definition.effect_of(&saga.state, Command::Do { step: *step }) == Effect::Transactional;
    let following = (command.step_index() + 1..steps.len()).take(steps_max.saturating_sub(1)).take_while(is_chained);
    let known = following.filter_map(|step| Some((step, steps[step].lock.filter(|_| steps[step].input.is_none())?)));
    let requests = known.map_while(|(step, name)| request_of_step(saga, step, name, command.work).ok());
    wanted.extend(requests.take(FOLLOWING_MAX).map(|request| Arc::new(WantedLock { request, is_required: false })));
    Ok(wanted)
}

fn request_of_step<S: Store>(
    saga: &SagaInstance<S>,
    step: usize,
    name_entities: LockedOf,
    work: WorkRef,
) -> Result<LockRequest, String> {
    let entities = caught(|| name_entities(saga.input_of(step)))
        .unwrap_or_else(|panic| Err(format!("its closure panicked: {panic}")))
        .and_then(Entity::checked)
        .map_err(|problem| format!("what it locks cannot be said: {problem}"))?;
    Ok(LockRequest::of_step(saga.id, (&saga.tenant, &saga.key), saga.doing(step).as_str(), entities, work, LONGEST))
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
        Ok((request, LockAnswer::Granted(tokens))) => {
            let locked = request.entities.into_iter().zip(tokens).map(|(entity, token)| LockedEntity { entity, token });
            granted(decider, step, &locked.collect::<Vec<_>>())
        }
        Ok((request, LockAnswer::TimedOut(holder))) => rejected(format!(
            "it waited {:?} for its semantic lock `{}`, and the saga `{holder}` was in front of it",
            request.within, request.name
        )),
        Ok((request, LockAnswer::Deadlock(with))) => {
            rejected(format!("deadlock with `{with}`: for `{}`, each waits for what the other has", request.name))
        }
        Ok((_, LockAnswer::Waits(_) | LockAnswer::Gone)) => return None,
    };
    Some(ended(output, ending, event))
}

/// What a step ends with whose semantic lock its own transaction took.
pub(crate) fn taken_lock_result<S: Store>(decider: &Decider<S>, command: &WorkItem<S>) -> (AttemptResult, Next) {
    let (output, ending, event) = granted(decider, command.step_index(), &command.locked);
    ended(output, ending, event)
}

/// The entities with their tokens are the output of the step. Names and numbers always encode.
fn granted<S: Store>(decider: &Decider<S>, step: usize, locked: &[LockedEntity]) -> (Option<Vec<u8>>, Ending, Event) {
    match decider.check_length(serde_json::to_vec(locked).unwrap_or_default()) {
        Ok(output) => (Some(output), Ending::Done, Event::Done { step }),
        Err(problem) => blocked(step, format!("its tokens cannot be stored: {problem}")),
    }
}
