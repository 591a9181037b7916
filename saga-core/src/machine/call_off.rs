use super::compensate::begin_compensation;
use super::decision::Decision;
use super::event::Refused;
use super::shape::Shape;
use super::state::{Failure, FailureKind, Phase, SagaState, StepPhase, StepState};
use crate::step::Rejection;

/// The saga is called off: it turns round, and nothing new of it begins. What is in flight comes to its end first, and
/// what needs a person waits for that person. Of a saga that is fresh no command was claimed, nor will be: it ends at once.
/// Whoever calls it off gives out no commands, so what only waits is ended by whoever has its row next.
pub(super) fn call_off(
    shape: &Shape,
    state: &mut SagaState,
    kind: FailureKind,
    reason: Rejection,
    is_fresh: bool,
    decision: &mut Decision,
) -> Result<(), Refused> {
    match state.phase {
        Phase::Running => {}
        Phase::Compensating => return Err(Refused::TurnedRound),
        Phase::Completed | Phase::Compensated => return Err(Refused::Ended),
    }
    if state.caller.is_some() {
        return Err(Refused::Hosted);
    }
    let step = come_to(state);
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
pub(super) fn is_fresh(shape: &Shape, state: &SagaState) -> bool {
    let is_untouched = |phase| matches!(phase, StepPhase::Ready | StepPhase::Started);
    // The command of a sub-saga leaves no trace on its row, and may have started it.
    let may_have_started = |step: usize| shape.is_child(step) && state.steps[step].phase == StepPhase::Started;
    if (0..shape.steps.len()).any(may_have_started) {
        return false;
    }
    // A signal that came early has a position, and changes no phase; a step that was given out before has a fence, or its
    // command lies with another service, where it may be done at any time.
    let was_given_out = |step: &StepState| step.in_doubt || step.fence > 0 || step.sent.is_some();
    state.stuck.is_none() && state.steps.iter().all(|step| is_untouched(step.phase) && !was_given_out(step))
}

/// The first step that is neither done nor skipped. In a saga that goes forward there is one.
fn come_to(state: &SagaState) -> usize {
    state.steps.iter().position(|step| !step.phase.is_passed()).unwrap_or_default()
}
