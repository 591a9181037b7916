//! Cancelling a saga before its pivot.

use crate::machine::compensate::begin_compensation;
use crate::machine::decision::Decision;
use crate::machine::event::Refused;
use crate::machine::state::failure::{Failure, FailureKind};
use crate::machine::state::shape::Shape;
use crate::machine::state::state::{Phase, SagaState};
use crate::machine::state::step_state::{StepPhase, StepState};
use crate::step::Rejection;

/// The saga is cancelled: it starts compensating. What is in flight ends first, and what is stuck waits for an operator. A
/// fresh saga has no command that was claimed, and these are withdrawn: it ends at once. Cancelling gives out no commands, so
/// a wait is ended by the worker that has its row next.
pub(in crate::machine) fn cancel(
    shape: &Shape,
    state: &mut SagaState,
    kind: FailureKind,
    reason: Rejection,
    is_fresh: bool,
    decision: &mut Decision,
) -> Result<(), Refused> {
    match state.phase {
        Phase::Running => {}
        Phase::Compensating => return Err(Refused::Compensating),
        Phase::Completed | Phase::Compensated => return Err(Refused::Ended),
    }
    if state.caller.is_some() {
        return Err(Refused::Hosted);
    }
    let step = current_step(state);
    if is_fresh {
        state.steps.iter_mut().for_each(|step| (step.phase, step.timer) = (StepPhase::Ready, None));
    }
    if let Some(pivot) = shape.pivot.filter(|&pivot| state.steps[pivot].phase != StepPhase::Ready) {
        return Err(Refused::PastPivot { pivot: shape.steps[pivot].name });
    }
    begin_compensation(shape, state, Some(Failure { step, kind, reason }), decision);
    Ok(())
}

/// Whether nothing has happened since the start.
pub(in crate::machine) fn is_fresh(shape: &Shape, state: &SagaState) -> bool {
    let is_untouched = |phase| matches!(phase, StepPhase::Ready | StepPhase::Started);
    // The command of a sub-saga leaves no trace on its row, and may have started it.
    let may_have_started = |step: usize| shape.is_child(step) && state.steps[step].phase == StepPhase::Started;
    if (0..shape.steps.len()).any(may_have_started) {
        return false;
    }
    // A signal that arrived early has a position, and changes no phase. A step that was given out before has a fence. The
    // command of a remote step lies with another service, where it may be done at any time.
    let was_given_out = |step: &StepState| step.in_doubt || step.fence > 0 || step.sent.is_some();
    state.stuck.is_none() && state.steps.iter().all(|step| is_untouched(step.phase) && !was_given_out(step))
}

/// The first step that is not passed. A saga that goes forward has one.
fn current_step(state: &SagaState) -> usize {
    state.steps.iter().position(|step| !step.is_passed()).unwrap_or_default()
}
