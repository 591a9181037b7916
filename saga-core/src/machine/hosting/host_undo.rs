//! A hosted step that its caller asks to undo.

use crate::machine::compensate::begin_compensation;
use crate::machine::decision::Decision;
use crate::machine::event::Event;
use crate::machine::forward::start;
use crate::machine::state::failure::{Failure, FailureKind};
use crate::machine::state::shape::Shape;
use crate::machine::state::state::{Phase, SagaState};
use crate::machine::state::step_state::StepPhase;

/// A hosted step whose undo arrives before its command, and the event that decides about it. A step that is known to be done
/// is undone with what the message carries; any other is never done.
pub fn undo_before_command(shape: &Shape, is_done: bool) -> (SagaState, Event) {
    let (mut state, _) = start(shape);
    if is_done {
        return (state, Event::Done { step: 0 });
    }
    state.steps[0].phase = StepPhase::Ready;
    (state, Event::UndoRequested)
}

/// The caller asks to undo the hosted step: its effect is undone, and what did not begin never does. What is in flight or
/// stuck ends first: only then is it known whether there is anything to undo.
pub(in crate::machine) fn undo_requested(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    let in_flight = |phase| matches!(phase, StepPhase::Started | StepPhase::Undoing);
    let is_open = state.stuck.is_some() || state.steps.iter().any(|step| in_flight(step.phase));
    if !is_open && matches!(state.phase, Phase::Running | Phase::Completed) {
        let failure = Failure::new(0, FailureKind::Rejected, "the saga that asked for it compensates");
        begin_compensation(shape, state, Some(failure), decision);
    }
}
