use super::compensate::{go_on_undoing, undone};
use super::shape::Shape;
use super::state::{Phase, SagaState, StepPhase};
use super::transition::{Action, Command, Decision, Refused, go_on, settle};
use crate::store::RecordedOutcome;

pub(super) fn act(
    shape: &Shape,
    state: &mut SagaState,
    action: Action,
    decision: &mut Decision,
) -> Result<(), Refused> {
    let stuck = state.stuck.take().ok_or(Refused::NotStuck)?;
    let step = stuck.step;
    match action {
        Action::Retry if stuck.undo => {
            let round = state.steps[step].undo_round;
            decision.commands.push(Command::Undo { step, round, known: undo_is_known(state, step) });
        }
        Action::Retry => decision.commands.push(Command::Do { step }),
        Action::Skip if stuck.undo => undone(shape, state, step, RecordedOutcome::Skipped, decision),
        Action::Skip => {
            settle(state, step, StepPhase::Skipped, RecordedOutcome::Skipped, decision);
            match state.phase {
                Phase::Compensating => go_on_undoing(shape, state, decision),
                _ => go_on(state, decision),
            }
        }
        Action::Force { completed, reason } => {
            state.phase = if completed { Phase::Completed } else { Phase::Compensated };
            state.forced = Some(reason);
        }
    }
    Ok(())
}

/// Whether the step that is being undone was known to have taken effect when its undo was given out.
fn undo_is_known(state: &SagaState, step: usize) -> bool {
    // Only an unknown step keeps its failure as the saga's, and its undo is the first one that begins.
    !state.failure.as_ref().is_some_and(|failure| {
        failure.step == step && failure.kind == super::state::FailureKind::Unknown && state.steps[step].undo_round == 1
    })
}
