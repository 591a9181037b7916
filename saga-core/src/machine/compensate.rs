//! Compensation: a saga undoes the steps that took effect or may have.

use super::decision::{Command, Decision};
use super::settle::{block, end_waits, settle_undo};
use super::state::failure::{Failure, FailureKind};
use super::state::shape::{Shape, UndoShape};
use super::state::state::{Phase, SagaState};
use super::state::step_state::StepPhase;
use super::undo_order::{needs_undo, next_undos};
use crate::store::RecordedOutcome;

/// The saga starts compensating: no further step of it begins.
pub(super) fn begin_compensation(
    shape: &Shape,
    state: &mut SagaState,
    failure: Option<Failure>,
    decision: &mut Decision,
) {
    state.phase = Phase::Compensating;
    let is_cancelled = |failure: &Failure| matches!(failure.kind, FailureKind::Cancelled | FailureKind::Deadline);
    if !failure.as_ref().is_some_and(is_cancelled) {
        end_waits(shape, state, decision);
    }
    state.failure = state.failure.take().or(failure);
    begin_next_undos(shape, state, decision);
}

/// A step of a saga that had ended as compensated took effect, or may have: it is undone as well.
pub(super) fn compensate_again(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    state.phase = Phase::Compensating;
    begin_next_undos(shape, state, decision);
}

/// Gives out every undo that waits for no other, or ends the saga as compensated. While a step of the saga is in flight,
/// nothing is undone: it may take effect after everything else, and must then be undone first.
pub(super) fn begin_next_undos(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    if state.stuck.is_some() || state.steps.iter().any(|step| step.phase == StepPhase::Started) {
        return;
    }
    let is_undoing = state.steps.iter().any(|step| step.phase == StepPhase::Undoing);
    let last = (0..state.steps.len())
        .filter(|&step| needs_undo(shape, state, step))
        .max_by_key(|&step| state.steps[step].position);
    match last {
        None if !is_undoing => state.phase = Phase::Compensated,
        None => {}
        Some(_) if state.paused.is_some() => {}
        Some(_) if !shape.is_sequence() => {
            for step in next_undos(shape, state) {
                begin_undo(shape, state, step, decision);
            }
        }
        Some(_) if is_undoing => {}
        Some(step) => begin_undo(shape, state, step, decision),
    }
}

fn begin_undo(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    let undone = &mut state.steps[step];
    undone.phase = StepPhase::Undoing;
    undone.undo_round += 1;
    let (round, known) = (undone.undo_round, !undone.in_doubt);
    let reason = match shape.undo(state, step) {
        UndoShape::Missing if known => "it took effect, and there is no compensation for it",
        UndoShape::Missing => "it may have taken effect, and there is no compensation for it",
        UndoShape::NeedsOutput if !known => {
            "a call that was not answered ended after the step was decided without it: it may have happened, and its \
             compensation needs its output"
        }
        _ => return decision.commands.push(Command::Undo { step, round, known }),
    };
    block(shape, state, step, true, reason.to_owned(), decision);
}

/// The compensation of a step returned. `informed` is false where a call of it was not given what the step returned.
pub(super) fn compensated(shape: &Shape, state: &mut SagaState, step: usize, informed: bool, decision: &mut Decision) {
    if state.steps[step].phase == StepPhase::Undoing {
        state.steps[step].undo_uninformed |= !informed;
        undone(shape, state, step, RecordedOutcome::Done, decision);
    }
}

/// An undo has ended: the compensation returned, or an operator skipped it.
pub(super) fn undone(
    shape: &Shape,
    state: &mut SagaState,
    step: usize,
    outcome: RecordedOutcome,
    decision: &mut Decision,
) {
    if state.steps[step].phase != StepPhase::Undoing {
        return;
    }
    settle_undo(state, step, outcome, decision);
    if state.phase == Phase::Compensating {
        begin_next_undos(shape, state, decision);
    }
}

/// The operator must know that there may be nothing to undo yet: a call of the step may still take effect.
pub(super) fn undo_blocked(shape: &Shape, state: &mut SagaState, step: usize, reason: String, decision: &mut Decision) {
    let warning =
        if state.steps[step].in_doubt { "; the step itself may have happened or not, and may still" } else { "" };
    block(shape, state, step, true, reason + warning, decision);
}
