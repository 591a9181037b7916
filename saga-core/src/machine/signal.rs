//! Messages from outside that a step waits for.

use super::decision::Decision;
use super::event::Refused;
use super::shape::{Effect, Shape};
use super::state::{Phase, SagaState, StepPhase};

impl Shape {
    /// Whether the step waits for a message from outside.
    pub fn awaits_signal(&self, step: usize) -> bool {
        self.steps.get(step).is_some_and(|step| step.effect == Effect::Signal)
    }
}

/// A signal arrives for a step that waits for it, or whose turn has not come yet: then it is kept. The first one decides,
/// unless the limit of the wait, or the end of the saga's way forward, was first. The step itself is done when its command
/// is claimed the next time.
pub(super) fn receive(
    shape: &Shape,
    state: &mut SagaState,
    step: usize,
    id: u128,
    decision: &mut Decision,
) -> Result<(), Refused> {
    let known = &state.steps[step];
    if known.signal == Some(id) {
        return Err(Refused::Received);
    }
    let is_open = matches!(known.phase, StepPhase::Ready | StepPhase::Started);
    if known.signal.is_some() || !is_open || state.phase != Phase::Running || !shape.awaits_signal(step) {
        return Err(Refused::Decided);
    }
    state.steps[step].signal = Some(id);
    decision.signalled = Some((step, state.next_position()));
    Ok(())
}
