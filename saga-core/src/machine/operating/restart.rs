//! A saga that is started instead of another one of its definition goes on where that one ended.

use crate::machine::decision::Decision;
use crate::machine::forward::begin_next_steps;
use crate::machine::settle::settle;
use crate::machine::state::shape::Shape;
use crate::machine::state::state::{Phase, SagaState};
use crate::machine::state::step_state::StepPhase;
use crate::store::RecordedOutcome;

/// These steps count as passed. Their effects belong to the other saga, so this one never undoes them.
///
/// The steps in arms that the other saga did not take are not taken here. Where the arms do not fit their choices, or the
/// saga has begun, nothing changes.
pub(in crate::machine) fn restart(
    shape: &Shape,
    state: &mut SagaState,
    steps: &[usize],
    not_taken: &[usize],
    decision: &mut Decision,
) {
    let has_begun = state.steps.iter().any(|step| step.phase != StepPhase::Ready);
    if state.phase != Phase::Running || has_begun || !fits(shape, steps, not_taken) {
        return;
    }
    for &step in not_taken {
        state.steps[step].phase = StepPhase::NotTaken;
    }
    for &step in steps.iter().filter(|step| **step < shape.steps.len()) {
        if state.steps[step].phase == StepPhase::Ready {
            settle(state, step, StepPhase::Skipped, RecordedOutcome::Skipped, decision);
        }
    }
    begin_next_steps(shape, state, decision);
}

/// Whether each passed choice has at most one arm left, and each choice that is not taken has none. No step in an arm of a
/// choice that is still to be made may be passed.
fn fits(shape: &Shape, steps: &[usize], not_taken: &[usize]) -> bool {
    let exists = |step: &usize| *step < shape.steps.len();
    let mut left: Vec<Option<usize>> = vec![None; shape.steps.len()];
    let mut each = (0..shape.steps.len()).flat_map(|step| shape.arms_around(step).map(move |arm| (step, arm)));
    let arms_fit = each.all(|(step, arm)| {
        let is_left_out = not_taken.contains(&step);
        match (steps.contains(&arm.choice), not_taken.contains(&arm.choice)) {
            (true, _) if is_left_out => true,
            (true, _) => *left[arm.choice].get_or_insert(arm.arm) == arm.arm,
            (false, true) => is_left_out,
            (false, false) => !is_left_out && !steps.contains(&step),
        }
    });
    let are_in_arms = not_taken.iter().all(|&step| exists(&step) && shape.steps[step].within.is_some());
    arms_fit && are_in_arms && steps.iter().all(|step| !not_taken.contains(step))
}
