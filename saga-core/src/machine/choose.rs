//! Choices: of the arms of each at most one runs, and the steps of the others are passed by.

use super::decision::Decision;
use super::shape::Shape;
use super::state::{Phase, SagaState, StepPhase};
use super::transition::{go_on, settle, without_effect};
use crate::store::RecordedOutcome;

/// A choice was made: it is recorded like a step that is done, and what stands in the other arms never runs.
pub(super) fn chosen(shape: &Shape, state: &mut SagaState, choice: usize, arm: Option<usize>, decision: &mut Decision) {
    if !shape.is_choice(choice) || state.steps[choice].phase != StepPhase::Started {
        return;
    }
    if state.phase != Phase::Running {
        // The saga turned round meanwhile: no arm begins.
        return without_effect(shape, state, choice, RecordedOutcome::Cancelled, None, decision);
    }
    settle(state, choice, StepPhase::Done, RecordedOutcome::Done, decision);
    pass_by(shape, state, choice, arm);
    go_on(shape, state, decision);
}

/// Of a choice nothing but that arm runs. What stands in a choice that is passed by is passed by as well: it comes
/// behind that choice in the definition.
pub(super) fn pass_by(shape: &Shape, state: &mut SagaState, choice: usize, taken: Option<usize>) {
    if !shape.is_choice(choice) {
        return;
    }
    for step in choice + 1..shape.steps.len() {
        let Some(within) = shape.steps[step].within else { continue };
        let is_other_arm = within.choice == choice && Some(within.arm) != taken;
        if is_other_arm || state.steps[within.choice].phase == StepPhase::NotTaken {
            state.steps[step].phase = StepPhase::NotTaken;
        }
    }
}
