//! The locks that end with a decision.

use crate::engine::instance::{SagaInstance, WorkItem, lock_of};
use crate::machine::Decision;
use crate::store::{Status, Store, Unlock};

/// The locks that end with a decision. All semantic locks of a family end with the last commit of the outermost saga: its
/// sub-sagas may have to be undone until then.
pub(super) fn unlocked<S: Store>(saga: &SagaInstance<S>, decision: &Decision, status: Status) -> Vec<Unlock> {
    // A sub-saga may be of another version than the one that the definition has, and have taken locks.
    let may_have_locks =
        || saga.definition.takes_locks || saga.definition.steps.iter().any(|step| step.saga().is_some());
    let is_end = status.is_ended() && saga.key.of_step().is_none() && may_have_locks();
    let whole = is_end.then(|| Unlock::Owner(saga.tenant.clone(), saga.key.clone()));
    let single = decision.released.iter().map(|step| unlock(saga, *step));
    whole.into_iter().chain(single).collect()
}

/// The end of the lock of a step that waits for its next attempt, so that others may go on meanwhile; nothing if it has none. A
/// call that may have taken effect keeps the lock until its answer is known, `in_doubt` or of an undo.
pub(crate) fn unlock_between_attempts<S: Store>(
    command: &WorkItem<S>,
    in_doubt: bool,
    attempts: u32,
) -> Option<Unlock> {
    let was_undone = command.is_undo() && command.effect().is_outside() && attempts > 0;
    let lets_go = lock_of(command).is_some() && !in_doubt && !was_undone;
    lets_go.then(|| unlock(&command.saga, command.step_index()))
}

fn unlock<S: Store>(saga: &SagaInstance<S>, step: usize) -> Unlock {
    Unlock::Lock(saga.tenant.clone(), saga.id, saga.doing(step).as_str().to_owned())
}
