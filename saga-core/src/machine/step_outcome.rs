//! What follows when the outcome of a step in flight is known.

use super::advance::advance;
use super::compensate::{begin_compensation, begin_next_undos, compensate_again};
use super::decision::{Command, Decision};
use super::forward::begin_next_steps;
use super::hosting::choreography::is_undo_requested_by_event;
use super::settle::{block, settle};
use super::state::failure::{Failure, FailureKind};
use super::state::shape::{Effect, Shape, Side, UndoShape};
use super::state::state::{Phase, SagaState};
use super::state::step_state::StepPhase;
use crate::store::RecordedOutcome;

/// A step in flight took effect. It gets its position here, under the lock of the saga's row.
pub(super) fn took_effect(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    settle(state, step, StepPhase::Done, RecordedOutcome::Done, decision);
    match state.phase {
        Phase::Running => begin_next_steps(shape, state, decision),
        Phase::Compensating => begin_next_undos(shape, state, decision),
        // An operator had ended the saga while the step was in flight. In a completed saga the effect stays, in a compensated
        // one it must not.
        Phase::Completed => {}
        Phase::Compensated => compensate_again(shape, state, decision),
    }
}

/// A step in flight certainly took no effect.
pub(super) fn without_effect(
    shape: &Shape,
    state: &mut SagaState,
    step: usize,
    outcome: RecordedOutcome,
    failure: Option<Failure>,
    decision: &mut Decision,
) {
    if state.steps[step].phase != StepPhase::Started {
        return;
    }
    let phase = match outcome {
        RecordedOutcome::Rejected => StepPhase::Rejected,
        RecordedOutcome::Failed => StepPhase::Failed,
        _ => StepPhase::Cancelled,
    };
    settle(state, step, phase, outcome, decision);
    match state.phase {
        Phase::Running => begin_compensation(shape, state, failure, decision),
        Phase::Compensating | Phase::Completed | Phase::Compensated => advance(shape, state, decision),
    }
}

/// A command was given back before it began. While the saga goes forward its steps are not cancelled, so it is given out
/// again, unless an operator is to decide about it.
pub(super) fn cancelled(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    if state.phase == Phase::Running && !is_undo_requested_by_event(state) {
        if !state.is_stuck_at(step) && state.steps[step].phase == StepPhase::Started {
            decision.commands.push(Command::Do { step });
        }
    } else {
        without_effect(shape, state, step, RecordedOutcome::Cancelled, None, decision);
    }
}

/// The outcome of a step is unknown. The record of that is written only when the undo begins: from then on a success of an
/// earlier worker counts as late. As long as an operator must decide, the step can be tried again.
pub(super) fn unknown(shape: &Shape, state: &mut SagaState, step: usize, failure: Failure, decision: &mut Decision) {
    if state.steps[step].phase != StepPhase::Started {
        return;
    }
    let only_forward = state.phase == Phase::Running && shape.side(state.base(step)) != Side::Before;
    let undo = shape.undo(state, step);
    if only_forward || matches!(undo, UndoShape::NeedsOutput | UndoShape::Missing) {
        let reason = if only_forward || undo == UndoShape::Missing {
            format!("it may or may not have happened, and there is no way back: {}", failure.reason)
        } else {
            format!("it may or may not have happened, and its compensation needs its output: {}", failure.reason)
        };
        return block_in_doubt(shape, state, step, reason, decision);
    }
    settle(state, step, StepPhase::Unknown, RecordedOutcome::Unknown, decision);
    state.steps[step].in_doubt = true;
    match state.phase {
        Phase::Running => begin_compensation(shape, state, Some(failure), decision),
        Phase::Compensating => begin_next_undos(shape, state, decision),
        Phase::Completed => {}
        Phase::Compensated => compensate_again(shape, state, decision),
    }
}

/// A step cannot go on by itself, so an operator must decide. While the saga compensates, it only matters whether the step took
/// effect; what a sub-saga or another service does of it is not known here.
pub(super) fn blocked(
    shape: &Shape,
    state: &mut SagaState,
    step: usize,
    reason: String,
    in_doubt: bool,
    decision: &mut Decision,
) {
    let is_elsewhere = shape.is_child(state.base(step)) || matches!(shape.effect(state, step), Effect::Remote { .. });
    let is_given_up = state.phase == Phase::Compensating && !is_elsewhere;
    match (is_given_up, in_doubt || state.steps[step].in_doubt) {
        (true, true) => {
            unknown(shape, state, step, Failure::new(step, FailureKind::Unknown, reason), decision);
        }
        (true, false) => without_effect(shape, state, step, RecordedOutcome::Failed, None, decision),
        (false, _) if in_doubt => block_in_doubt(shape, state, step, reason, decision),
        (false, _) => block(shape, state, step, false, reason, decision),
    }
}

/// An operator must decide about a step that may have taken effect. It stays in doubt when it is tried again: a rejection
/// does not say then that the step had no effect.
fn block_in_doubt(shape: &Shape, state: &mut SagaState, step: usize, reason: String, decision: &mut Decision) {
    if state.steps[step].phase == StepPhase::Started {
        state.steps[step].in_doubt = true;
    }
    block(shape, state, step, false, reason, decision);
}
