use super::compensate::begin_compensation;
use super::shape::Shape;
use super::state::{Failure, FailureKind, Phase, SagaState, StepPhase};
use super::transition::{Decision, Refused};
use crate::step::Rejection;

/// The saga is called off: it turns round, and nothing new of it begins. What is in flight comes to its end first, and
/// what needs a person waits for that person.
pub(super) fn call_off(
    shape: &Shape,
    state: &mut SagaState,
    reason: Rejection,
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
    if let Some(pivot) = shape.pivot.filter(|&pivot| state.steps[pivot].phase != StepPhase::Ready) {
        return Err(Refused::PastPivot { pivot: shape.steps[pivot].name });
    }
    let step = come_to(state);
    begin_compensation(shape, state, Some(Failure { step, kind: FailureKind::Cancelled, reason }), decision);
    Ok(())
}

/// The first step that is neither done nor skipped. In a saga that goes forward there is one.
fn come_to(state: &SagaState) -> usize {
    let is_passed = |phase| matches!(phase, StepPhase::Done | StepPhase::Skipped);
    state.steps.iter().position(|step| !is_passed(step.phase)).unwrap_or_default()
}
