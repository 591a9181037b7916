use super::decision::Decision;
use super::shape::Shape;
use super::state::{Phase, SagaState, StepPhase};
use super::transition::{go_on, settle};
use crate::store::RecordedOutcome;

/// A saga that has done nothing yet goes on where another one of its definition ended: these steps count as passed. What
/// they did belongs to the other saga, so that this one never undoes it.
pub(super) fn take_over(shape: &Shape, state: &mut SagaState, steps: &[usize], decision: &mut Decision) {
    if state.phase != Phase::Running || state.position > 0 {
        return;
    }
    for &step in steps.iter().filter(|step| **step < shape.steps.len()) {
        if state.steps[step].phase == StepPhase::Ready {
            settle(state, step, StepPhase::Skipped, RecordedOutcome::Skipped, decision);
        }
    }
    go_on(shape, state, decision);
}

impl Shape {
    /// The steps that stand when a saga begins at that one: all but it and what comes behind it.
    pub fn before(&self, step: usize) -> Vec<usize> {
        (0..self.steps.len()).filter(|&other| other != step && !self.is_behind(other, step)).collect()
    }
}
