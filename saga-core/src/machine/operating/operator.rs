//! What an operator does with a stuck saga.

use super::lock_lost::lost_lock;
use crate::machine::advance::advance;
use crate::machine::arms::leave_out_other_arms;
use crate::machine::compensate::undone;
use crate::machine::decision::{Command, Decision};
use crate::machine::event::{Action, Refused};
use crate::machine::settle::{block, end_waits, settle, show_next_stuck, skip};
use crate::machine::state::failure::Stuck;
use crate::machine::state::shape::{Effect, Shape};
use crate::machine::state::state::{Phase, SagaState};
use crate::machine::state::step_state::StepPhase;
use crate::store::RecordedOutcome;

pub(in crate::machine) fn act(
    shape: &Shape,
    state: &mut SagaState,
    action: Action,
    decision: &mut Decision,
) -> Result<(), Refused> {
    let stuck = state.stuck.take().ok_or(Refused::NotStuck)?;
    let step = stuck.step;
    if let Action::Force { completed, reason } = action {
        stop(shape, state, stuck, completed, decision);
        end_waits(shape, state, decision);
        state.phase = if completed { Phase::Completed } else { Phase::Compensated };
        state.forced = Some(reason);
        return Ok(());
    }
    show_next_stuck(state, decision);
    let is_retried_step = action == Action::Retry && !stuck.undo;
    if is_retried_step && state.phase == Phase::Compensating && is_remote(shape, state, step) {
        // A message that its host could not handle is a dead letter there, and may be replayed at any time.
        state.steps[step].in_doubt = true;
    }
    match action {
        Action::Retry if stuck.undo => {
            let undone = &mut state.steps[step];
            // The calls until now may not have known of a success that was reported since, or will be.
            undone.undo_uninformed |= undone.in_doubt || undone.late;
            decision.commands.push(Command::Undo { step, round: undone.undo_round, known: !undone.in_doubt });
        }
        // A step that certainly had no effect does not begin again once the saga compensates. A step that may have had one is
        // called again, since the answer says whether there is anything to undo. A sub-saga is looked at again: it may still run.
        Action::Retry if state.phase == Phase::Compensating && is_without_effect(shape, state, step) => {
            settle(state, step, StepPhase::Cancelled, RecordedOutcome::Cancelled, decision);
        }
        Action::Retry => match lost_lock(shape, state).filter(|_| state.phase == Phase::Running) {
            None => decision.commands.push(Command::Do { step }),
            Some(reason) => block(shape, state, step, false, reason, decision),
        },
        Action::Skip | Action::Choose { .. } if stuck.undo => {
            undone(shape, state, step, RecordedOutcome::Skipped, decision);
        }
        Action::Choose { arm } if shape.is_choice(step) => {
            settle(state, step, StepPhase::Done, RecordedOutcome::Done, decision);
            leave_out_other_arms(shape, state, step, arm);
        }
        Action::Skip | Action::Choose { .. } | Action::Force { .. } => skip(shape, state, step, decision),
    }
    // The other branches had waited for the operator as well.
    advance(shape, state, decision);
    Ok(())
}

fn is_without_effect(shape: &Shape, state: &SagaState, step: usize) -> bool {
    // A list is made here, before its sub-sagas begin.
    let is_child = shape.is_child(state.base(step)) && shape.each(step).is_none();
    !state.steps[step].in_doubt && !is_child
}

fn is_remote(shape: &Shape, state: &SagaState, step: usize) -> bool {
    matches!(shape.effect(state, step), Effect::Remote { .. })
}

/// Ends what is under way in a saga that is ended by force. What had taken effect is not undone any more; only a success
/// that is reported later still is.
fn stop(shape: &Shape, state: &mut SagaState, stuck: Stuck, completed: bool, decision: &mut Decision) {
    // A saga that has ended gives out nothing when what is stuck is skipped.
    state.phase = Phase::Completed;
    for stuck in std::iter::once(stuck).chain(std::mem::take(&mut state.also_stuck)) {
        if stuck.undo {
            undone(shape, state, stuck.step, RecordedOutcome::Skipped, decision);
        } else {
            skip(shape, state, stuck.step, decision);
        }
    }
    let has_effect = |phase| matches!(phase, StepPhase::Done | StepPhase::Unknown);
    for step in state.steps.iter_mut().filter(|step| !completed && has_effect(step.phase)) {
        step.phase = StepPhase::UndoSkipped;
    }
}
