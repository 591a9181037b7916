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
            let undone = state.steps[step];
            decision.commands.push(Command::Undo { step, round: undone.undo_round, known: !undone.maybe });
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
