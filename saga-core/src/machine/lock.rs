//! Which locks end with an event.

use super::state::shape::Shape;
use super::state::state::SagaState;
use super::state::step_state::StepPhase;

/// The locks of a saga before an event.
pub(super) struct LocksBefore {
    /// The steps that have asked for their semantic locks.
    asked: Vec<usize>,
    /// The steps that end semantic locks, and were not done.
    holding: Vec<usize>,
    /// The steps whose calls have a lock, and that are under way.
    calling: Vec<usize>,
}

impl LocksBefore {
    pub(super) fn of(shape: &Shape, state: &SagaState) -> Self {
        let is_asked = |step: &usize| shape.is_lock(*step) && state.steps[*step].phase == StepPhase::Started;
        let holds = |step: &usize| !shape.steps[*step].releases.is_empty() && !has_ended(state, *step);
        let steps = 0..shape.steps.len();
        let locks_calls = shape.steps.iter().any(|step| step.locks_calls);
        let instances = 0..if locks_calls { state.steps.len() } else { 0 };
        // A list is not called; its items are.
        let is_list = |step: usize| shape.steps.get(step).is_some_and(|step| step.each.is_some());
        let calls = |step: &usize| shape.of(state, *step).locks_calls && !is_list(*step) && is_under_way(state, *step);
        Self {
            asked: steps.clone().filter(is_asked).collect(),
            holding: steps.filter(holds).collect(),
            calling: instances.filter(calls).collect(),
        }
    }

    /// The steps whose locks or requests end with what has happened: the saga does not wait any more and did not get the
    /// lock, a step that ends a lock is done, or a step with a lock of its own has its result or needs an operator. The end
    /// of the saga ends all semantic locks.
    pub(super) fn released(self, shape: &Shape, state: &SagaState) -> Vec<usize> {
        let is_given_up = |step: &usize| !matches!(state.steps[*step].phase, StepPhase::Started | StepPhase::Done);
        let given_up = self.asked.into_iter().filter(is_given_up);
        let done = self.holding.into_iter().filter(|step| has_ended(state, *step));
        let ended = done.flat_map(|step| &shape.steps[step].releases).filter_map(|lock| shape.position(lock));
        let called = self.calling.into_iter().filter(|step| !is_under_way(state, *step));
        given_up.chain(ended).chain(called).collect()
    }
}

/// The steps whose semantic locks the saga has.
pub(crate) fn held_locks(shape: &Shape, state: &SagaState) -> Vec<usize> {
    let steps = 0..shape.steps.len();
    let releases = |step: usize, name| shape.steps[step].releases.contains(&name) && has_ended(state, step);
    let is_held = |step: &usize| {
        let of = &state.steps[*step];
        let is_granted = shape.is_lock(*step) && of.phase == StepPhase::Done && !of.lock_lost;
        is_granted && !steps.clone().any(|other| releases(other, shape.steps[*step].name))
    };
    steps.clone().filter(is_held).collect()
}

fn has_ended(state: &SagaState, step: usize) -> bool {
    matches!(state.steps[step].phase, StepPhase::Done | StepPhase::Skipped)
}

/// Whether the step or its undo may be called.
fn is_under_way(state: &SagaState, step: usize) -> bool {
    let is_called = |step: &StepPhase| matches!(step, StepPhase::Started | StepPhase::Undoing);
    state.steps.get(step).is_some_and(|of| is_called(&of.phase)) && !state.is_stuck_at(step)
}
