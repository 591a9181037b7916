//! Which semantic locks end with an event.

use super::shape::Shape;
use super::state::SagaState;
use super::step_state::StepPhase;

/// The semantic locks of a saga before an event.
pub(super) struct LocksBefore {
    /// The steps that have asked for their locks.
    asked: Vec<usize>,
    /// The steps that end locks, and were not done.
    holding: Vec<usize>,
}

impl LocksBefore {
    pub(super) fn of(shape: &Shape, state: &SagaState) -> Self {
        let is_asked = |step: &usize| shape.is_lock(*step) && state.steps[*step].phase == StepPhase::Started;
        let holds = |step: &usize| !shape.steps[*step].releases.is_empty() && !has_ended(state, *step);
        let steps = 0..shape.steps.len();
        Self { asked: steps.clone().filter(is_asked).collect(), holding: steps.filter(holds).collect() }
    }

    /// The steps whose locks or requests end with what has happened: the saga does not wait any more and did not get the
    /// lock, or a step that ends a lock is done. The end of the saga ends all of them.
    pub(super) fn released(self, shape: &Shape, state: &SagaState) -> Vec<usize> {
        let is_given_up = |step: &usize| !matches!(state.steps[*step].phase, StepPhase::Started | StepPhase::Done);
        let given_up = self.asked.into_iter().filter(is_given_up);
        let done = self.holding.into_iter().filter(|step| has_ended(state, *step));
        let ended = done.flat_map(|step| &shape.steps[step].releases).filter_map(|lock| shape.position(lock));
        given_up.chain(ended).collect()
    }
}

fn has_ended(state: &SagaState, step: usize) -> bool {
    matches!(state.steps[step].phase, StepPhase::Done | StepPhase::Skipped)
}
