//! Signals that a step waits for.

use super::decision::Decision;
use super::event::Refused;
use super::state::shape::Shape;
use super::state::state::{Phase, SagaState};
use super::state::step_state::StepPhase;

/// A signal arrives for a step that waits for it, or that has not begun: then it is kept. The first signal decides, unless
/// the wait ran out, or the saga stopped going forward, before it. The step itself is done when its command is claimed next.
pub(super) fn receive(
    shape: &Shape,
    state: &mut SagaState,
    step: usize,
    id: u128,
    decision: &mut Decision,
) -> Result<(), Refused> {
    let known = &state.steps[step];
    if known.signal == Some(id) {
        return Err(Refused::Duplicate);
    }
    let is_open = matches!(known.phase, StepPhase::Ready | StepPhase::Started);
    if known.signal.is_some() || !is_open || state.phase != Phase::Running || !shape.awaits_signal(step) {
        return Err(Refused::Decided);
    }
    state.steps[step].signal = Some(id);
    decision.signalled = Some((step, state.next_position()));
    Ok(())
}
