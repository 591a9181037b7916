use super::choose::pass_by;
use super::compensate::{go_on_undoing, undone};
use super::decision::{Command, Decision};
use super::event::{Action, Refused};
use super::shape::{Effect, Shape};
use super::state::{Phase, SagaState, StepPhase, Stuck};
use super::timer::end_idle;
use super::transition::{go_on, next_stuck, settle};
use crate::store::RecordedOutcome;

pub(super) fn act(
    shape: &Shape,
    state: &mut SagaState,
    action: Action,
    decision: &mut Decision,
) -> Result<(), Refused> {
    let stuck = state.stuck.take().ok_or(Refused::NotStuck)?;
    let step = stuck.step;
    if let Action::Force { completed, reason } = action {
        leave_as_it_is(shape, state, stuck, completed, decision);
        end_idle(shape, state, decision);
        state.phase = if completed { Phase::Completed } else { Phase::Compensated };
        state.forced = Some(reason);
        return Ok(());
    }
    next_stuck(state, decision);
    let is_retried_step = action == Action::Retry && !stuck.undo;
    if is_retried_step && state.phase == Phase::Compensating && is_remote(shape, state, step) {
        // What its host could not handle lies there as a dead letter, which may be replayed at any time.
        state.steps[step].in_doubt = true;
    }
    match action {
        Action::Retry if stuck.undo => {
            let undone = &mut state.steps[step];
            // What was tried until now may not have known of a success that was reported since, or will be.
            undone.undo_uninformed |= undone.in_doubt || undone.late;
            decision.commands.push(Command::Undo { step, round: undone.undo_round, known: !undone.in_doubt });
        }
        // What certainly had no effect does not begin again once the saga compensates. What may have had one is asked
        // again, since the answer says whether there is anything to undo.
        Action::Retry if state.phase == Phase::Compensating && !state.steps[step].in_doubt => {
            settle(state, step, StepPhase::Cancelled, RecordedOutcome::Cancelled, decision);
        }
        Action::Retry => decision.commands.push(Command::Do { step }),
        Action::Skip | Action::Choose { .. } if stuck.undo => {
            undone(shape, state, step, RecordedOutcome::Skipped, decision);
        }
        Action::Choose { arm } if shape.is_choice(step) => {
            settle(state, step, StepPhase::Done, RecordedOutcome::Done, decision);
            pass_by(shape, state, step, arm);
        }
        Action::Skip | Action::Choose { .. } | Action::Force { .. } => {
            settle(state, step, StepPhase::Skipped, RecordedOutcome::Skipped, decision);
            pass_by(shape, state, step, None);
        }
    }
    // The other branches had waited for the person as well.
    match state.phase {
        Phase::Running => go_on(shape, state, decision),
        Phase::Compensating => go_on_undoing(shape, state, decision),
        Phase::Completed | Phase::Compensated => {}
    }
    Ok(())
}

fn is_remote(shape: &Shape, state: &SagaState, step: usize) -> bool {
    matches!(shape.effect(state, step), Effect::Remote { .. })
}

/// Nothing of a saga that was ended by force is under way, and what had taken effect is not undone any more. Only a
/// success that is reported later still is.
fn leave_as_it_is(shape: &Shape, state: &mut SagaState, stuck: Stuck, completed: bool, decision: &mut Decision) {
    // With no direction, nothing follows from going past what is stuck.
    state.phase = Phase::Completed;
    for stuck in std::iter::once(stuck).chain(std::mem::take(&mut state.also_stuck)) {
        if stuck.undo {
            undone(shape, state, stuck.step, RecordedOutcome::Skipped, decision);
        } else {
            settle(state, stuck.step, StepPhase::Skipped, RecordedOutcome::Skipped, decision);
            pass_by(shape, state, stuck.step, None);
        }
    }
    let stands = |phase| matches!(phase, StepPhase::Done | StepPhase::Unknown);
    for step in state.steps.iter_mut().filter(|step| !completed && stands(step.phase)) {
        step.phase = StepPhase::UndoSkipped;
    }
}
