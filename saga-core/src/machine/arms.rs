//! The arms of a choice: at most one of them runs.

use super::state::shape::Shape;
use super::state::state::SagaState;
use super::state::step_state::StepPhase;

/// Only the taken arm of a choice runs: the steps of its other arms are not taken. A choice that is not taken comes before
/// the steps in its arms, so they are not taken either.
pub(super) fn leave_out_other_arms(shape: &Shape, state: &mut SagaState, choice: usize, taken: Option<usize>) {
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
