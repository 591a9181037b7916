use super::decision::Decision;
use super::shape::Shape;
use super::state::{Phase, SagaState, StepPhase};
use super::transition::{go_on, settle};
use crate::store::RecordedOutcome;

/// A saga that has done nothing yet goes on where another one of its definition ended: these steps count as passed. What
/// they did belongs to the other saga, so that this one never undoes it.
///
/// What stands in arms that were not taken there is passed by here. Where the arms do not fit their choices, nothing is
/// taken over.
pub(super) fn take_over(
    shape: &Shape,
    state: &mut SagaState,
    steps: &[usize],
    passed_by: &[usize],
    decision: &mut Decision,
) {
    let has_begun = state.steps.iter().any(|step| step.phase != StepPhase::Ready);
    if state.phase != Phase::Running || has_begun || !fits(shape, steps, passed_by) {
        return;
    }
    for &step in passed_by {
        state.steps[step].phase = StepPhase::NotTaken;
    }
    for &step in steps.iter().filter(|step| **step < shape.steps.len()) {
        if state.steps[step].phase == StepPhase::Ready {
            settle(state, step, StepPhase::Skipped, RecordedOutcome::Skipped, decision);
        }
    }
    go_on(shape, state, decision);
}

/// Whether of each choice that is taken over one arm is left at most, and of each that is passed by none. Before a choice
/// that is still to be made nothing of its arms is taken over.
fn fits(shape: &Shape, steps: &[usize], passed_by: &[usize]) -> bool {
    let is_there = |step: &usize| *step < shape.steps.len();
    let mut left: Vec<Option<usize>> = vec![None; shape.steps.len()];
    let mut each = (0..shape.steps.len()).flat_map(|step| shape.arms_around(step).map(move |arm| (step, arm)));
    let arms_fit = each.all(|(step, arm)| {
        let is_passed_by = passed_by.contains(&step);
        match (steps.contains(&arm.choice), passed_by.contains(&arm.choice)) {
            (true, _) if is_passed_by => true,
            (true, _) => *left[arm.choice].get_or_insert(arm.arm) == arm.arm,
            (false, true) => is_passed_by,
            (false, false) => !is_passed_by && !steps.contains(&step),
        }
    });
    let stand_in_arms = passed_by.iter().all(|&step| is_there(&step) && shape.steps[step].within.is_some());
    arms_fit && stand_in_arms && steps.iter().all(|step| !passed_by.contains(step))
}

impl Shape {
    /// The steps that stand when a saga begins at that one: all but it and what comes behind it.
    pub fn before(&self, step: usize) -> Vec<usize> {
        (0..self.steps.len()).filter(|&other| other != step && !self.is_behind(other, step)).collect()
    }
}
