//! A semantic lock that an operator takes from a saga.

use crate::machine::decision::Decision;
use crate::machine::event::Refused;
use crate::machine::state::shape::Shape;
use crate::machine::state::state::SagaState;
use crate::machine::state::step_state::StepPhase;

/// The saga loses a lock. It may only do so while nothing of it runs: another saga has the entity from this commit on. The
/// saga begins no step any more, and its undos run as before.
pub(in crate::machine) fn unlocked(
    shape: &Shape,
    state: &mut SagaState,
    step: usize,
    decision: &mut Decision,
) -> Result<(), Refused> {
    if state.has_ended() {
        return Err(Refused::Ended);
    }
    let has_it = shape.is_lock(step) && state.steps[step].phase == StepPhase::Done && !state.steps[step].lock_lost;
    if !has_it {
        return Err(Refused::NotLocked);
    }
    if state.stuck.is_none() && state.paused.is_none() {
        return Err(Refused::NotHalted);
    }
    let halted = usize::from(state.stuck.is_some()) + state.also_stuck.len();
    let parked = state.paused.as_ref().map_or(0, |pause| pause.parked.len());
    if state.under_way() > halted + parked {
        return Err(Refused::UnderWay);
    }
    state.steps[step].lock_lost = true;
    decision.released.push(step);
    Ok(())
}

/// Why no step of the saga may begin: it lost a semantic lock.
pub(in crate::machine) fn lost_lock(shape: &Shape, state: &SagaState) -> Option<String> {
    let lost = state.steps.iter().position(|step| step.lock_lost)?;
    let name = shape.steps.get(lost).map_or("", |step| step.name);
    Some(format!(
        "an operator has ended its semantic lock `{name}`, so no step of it may begin; cancel the saga, or end it by force"
    ))
}
