//! Facts that arrive after a step was decided without them. A success counts at any time.

use super::compensate::compensate_again;
use super::decision::{Decision, Revision};
use super::state::shape::{Effect, Shape, UndoShape};
use super::state::state::{Phase, SagaState};
use super::state::step_state::StepPhase;
use super::step_outcome::took_effect;
use crate::store::RecordedOutcome;

/// A step took effect: in time, again, or after it was decided without this success.
pub(super) fn done(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    match state.steps[step].phase {
        StepPhase::Started => took_effect(shape, state, step, decision),
        StepPhase::Done => {}
        _ => late_success(shape, state, step, decision),
    }
}

/// A success is reported for a step that was decided without it. Its record becomes that of a done step, and where the saga
/// compensates or has compensated, the step is undone, or undone again.
pub(super) fn late_success(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    let reported = &mut state.steps[step];
    let expected = match reported.phase {
        StepPhase::Rejected => RecordedOutcome::Rejected,
        StepPhase::Failed => RecordedOutcome::Failed,
        StepPhase::Cancelled => RecordedOutcome::Cancelled,
        StepPhase::Skipped => RecordedOutcome::Skipped,
        // It had not been decided: the success decides it.
        StepPhase::Started => return took_effect(shape, state, step, decision),
        _ if reported.in_doubt => RecordedOutcome::Unknown,
        // It is known to be done: the same success was reported twice.
        _ => return,
    };
    decision.revision = Some(Revision { step, expected, outcome: RecordedOutcome::Done });
    reported.in_doubt = false;
    if reported.phase == StepPhase::Undoing {
        reported.late = true;
        return;
    }
    let position = state.next_position();
    state.steps[step].phase = StepPhase::Done;
    state.steps[step].position = position;
    if matches!(state.phase, Phase::Compensating | Phase::Compensated) {
        compensate_again(shape, state, decision);
    }
}

/// A call ended without a definite answer after the step was decided, or undone, without it. The step may have taken effect
/// after all: it is undone, or undone again, as far as that is possible without its output.
pub(super) fn late_unknown(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    let is_compensating = matches!(state.phase, Phase::Compensating | Phase::Compensated);
    let is_needed = shape.undo(state, step) != UndoShape::NotNeeded;
    if !is_compensating || !is_needed || shape.effect(state, step) != Effect::External {
        return;
    }
    let reported = &mut state.steps[step];
    let expected = match reported.phase {
        StepPhase::Rejected => Some(RecordedOutcome::Rejected),
        StepPhase::Failed => Some(RecordedOutcome::Failed),
        StepPhase::Cancelled => Some(RecordedOutcome::Cancelled),
        // Its undo knew of no success, and ended before this call.
        StepPhase::Undone if reported.in_doubt => None,
        StepPhase::Undoing if reported.in_doubt => {
            reported.late = true;
            return;
        }
        _ => return,
    };
    decision.revision = expected.map(|expected| Revision { step, expected, outcome: RecordedOutcome::Unknown });
    let position = state.next_position();
    let reported = &mut state.steps[step];
    (reported.phase, reported.position, reported.in_doubt) = (StepPhase::Unknown, position, true);
    compensate_again(shape, state, decision);
}
