//! The progress reports of commands that have no work row, since they are stuck or not given out again yet.

use super::state::{KeptReport, SagaState};
use super::step_state::StepPhase;
use crate::machine::decision::Command;

impl SagaState {
    /// The last report of that command, where it is kept here.
    pub fn report_of(&self, command: Command) -> Option<&str> {
        let at = place_of(command);
        self.reports.iter().find(|kept| (kept.step, kept.round) == at).map(|kept| &*kept.report)
    }

    /// Keeps the last report of that command.
    pub fn keep_report(&mut self, command: Command, report: String) {
        let (step, round) = place_of(command);
        self.reports.retain(|kept| (kept.step, kept.round) != (step, round));
        self.reports.push(KeptReport { step, round, report });
    }

    /// Drops the reports of commands that have ended.
    pub fn drop_reports(&mut self) {
        let steps = &self.steps;
        self.reports.retain(|kept| {
            steps.get(kept.step).is_some_and(|step| match kept.round {
                0 => step.phase == StepPhase::Started,
                round => step.phase == StepPhase::Undoing && step.undo_round == round,
            })
        });
    }
}

fn place_of(command: Command) -> (usize, u32) {
    match command {
        Command::Do { step } => (step, 0),
        Command::Undo { step, round, .. } => (step, round),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DO: Command = Command::Do { step: 1 };

    fn undo(round: u32) -> Command {
        Command::Undo { step: 1, round, known: true }
    }

    #[test]
    fn the_last_report_of_a_command_is_kept_while_it_is_under_way() {
        let mut state = SagaState::new(2);
        state.steps[1].phase = StepPhase::Started;
        state.keep_report(DO, "1".into());
        state.keep_report(DO, "2".into());
        state.drop_reports();
        assert_eq!((state.report_of(DO), state.report_of(Command::Do { step: 0 })), (Some("2"), None));
        assert_eq!(SagaState::decode(&state.encode(), 2).unwrap(), state);
        state.steps[1].phase = StepPhase::Done;
        state.drop_reports();
        assert_eq!(state.reports, []);
    }

    #[test]
    fn each_undo_has_its_own() {
        let mut state = SagaState::new(2);
        (state.steps[1].phase, state.steps[1].undo_round) = (StepPhase::Undoing, 1);
        state.keep_report(DO, "0".into());
        state.keep_report(undo(1), "1".into());
        state.drop_reports();
        assert_eq!((state.report_of(DO), state.report_of(undo(1)), state.report_of(undo(2))), (None, Some("1"), None));
        state.steps[1].undo_round = 2;
        state.drop_reports();
        assert_eq!(state.report_of(undo(1)), None);
    }

    #[test]
    fn a_saga_without_reports_is_stored_as_ever() {
        assert!(!String::from_utf8(SagaState::new(2).encode()).unwrap().contains("\"r\":"));
    }
}
