//! Writes the outcome of a step, or of an undo, into the state; what is stuck, and what no longer is.
//!
//! Nothing here gives out a command: the callers do, when the state is whole.

use super::arms::leave_out_other_arms;
use super::decision::{Decision, Record};
use super::state::failure::Stuck;
use super::state::remote::Sent;
use super::state::shape::Shape;
use super::state::state::{Phase, SagaState};
use super::state::step_state::StepPhase;
use crate::step::limited;
use crate::store::RecordedOutcome;

/// Records the outcome of a step. If the step was stuck, it no longer is.
pub(super) fn settle(
    state: &mut SagaState,
    step: usize,
    phase: StepPhase,
    outcome: RecordedOutcome,
    decision: &mut Decision,
) {
    let position = state.next_position();
    let settled = &mut state.steps[step];
    (settled.phase, settled.position, settled.in_doubt, settled.timer) = (phase, position, false, None);
    settled.sent = settled.sent.map(Sent::settled);
    decision.insert(Record::of_step(step, outcome, position));
    unblock(state, step, false, decision);
}

/// Records that a step is skipped. If it is a choice, none of its arms runs.
pub(super) fn skip(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    settle(state, step, StepPhase::Skipped, RecordedOutcome::Skipped, decision);
    leave_out_other_arms(shape, state, step, None);
}

/// Records the outcome of an undo. If the undo was stuck, it no longer is.
pub(super) fn settle_undo(state: &mut SagaState, step: usize, outcome: RecordedOutcome, decision: &mut Decision) {
    let position = state.next_position();
    let undone = &mut state.steps[step];
    let record = Record { step, undo_round: Some(undone.undo_round), outcome, position };
    decision.insert(record);
    // A second reply to it changes nothing.
    undone.undo_sent = None;
    let (was_late, was_uninformed) = (std::mem::take(&mut undone.late), std::mem::take(&mut undone.undo_uninformed));
    if was_late && was_uninformed && outcome == RecordedOutcome::Done {
        // This undo was called before the success was known: it is due again, with the output and under another key. If it is
        // only known that there was one more call, it is due again without the output.
        undone.phase = if undone.in_doubt { StepPhase::Unknown } else { StepPhase::Done };
        undone.position = position;
        if state.phase == Phase::Compensated {
            state.phase = Phase::Compensating;
        }
    } else {
        undone.phase = if outcome == RecordedOutcome::Done { StepPhase::Undone } else { StepPhase::UndoSkipped };
    }
    unblock(state, step, true, decision);
}

/// The saga needs an operator. The first reason stays until the operator acted on it; further ones wait behind it. In a saga
/// that an operator has ended already, what gets stuck is skipped.
pub(super) fn block(
    shape: &Shape,
    state: &mut SagaState,
    step: usize,
    undo: bool,
    reason: String,
    decision: &mut Decision,
) {
    let expected = if undo { StepPhase::Undoing } else { StepPhase::Started };
    if state.steps[step].phase != expected || state.is_stuck_at(step) {
        return;
    }
    match state.phase {
        Phase::Running | Phase::Compensating => {
            state.also_stuck.push(Stuck { step, undo, reason: limited(reason), input: None });
            decision.blocked.push(step);
            show_next_stuck(state, decision);
        }
        Phase::Completed | Phase::Compensated if undo => settle_undo(state, step, RecordedOutcome::Skipped, decision),
        Phase::Completed | Phase::Compensated => skip(shape, state, step, decision),
    }
}

/// What was stuck has been decided. What else is stuck is shown now.
pub(super) fn unblock(state: &mut SagaState, step: usize, undo: bool, decision: &mut Decision) {
    let is_it = |stuck: &Stuck| stuck.step == step && stuck.undo == undo;
    state.also_stuck.retain(|stuck| !is_it(stuck));
    if state.stuck.take_if(|stuck| is_it(stuck)).is_some() {
        show_next_stuck(state, decision);
    }
}

/// Shows the operator what else is stuck.
pub(super) fn show_next_stuck(state: &mut SagaState, decision: &mut Decision) {
    if state.stuck.is_none() && !state.also_stuck.is_empty() {
        state.stuck = Some(state.also_stuck.remove(0));
        decision.became_stuck = true;
    }
}

/// The saga compensates, so waits are over and their rows are withdrawn. They get no record: the worker that has the row may
/// be writing a record at the same moment, and must see that the saga has moved, not that its work was done by another.
pub(super) fn end_waits(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    for step in 0..shape.steps.len() {
        if shape.is_wait(step) && state.steps[step].phase == StepPhase::Started && !state.is_stuck_at(step) {
            decision.withdrawn.extend(state.steps[step].timer.take());
            state.steps[step].phase = StepPhase::Cancelled;
        }
    }
}
