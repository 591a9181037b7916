//! What people do.

use saga_core::machine::{Action, Command, Effect};
use saga_core::store::Status;

use super::{Model, Open, step_of};

impl Model {
    pub(super) fn operator(&mut self, action: &Action) -> Vec<Command> {
        let stuck = self.open.iter().filter(|open| open.stuck.is_some()).min_by_key(|open| open.stuck);
        let Some(stuck) = stuck.copied() else { return Vec::new() };
        let step = step_of(stuck.command);
        let mut commands = Vec::new();
        let is_list = self.shape.steps.get(step).is_some_and(|step| step.each.is_some());
        let is_remote = !is_list && matches!(self.shape.steps[self.base(step)].effect, Effect::Remote { .. });
        let is_retried_step = action == &Action::Retry && matches!(stuck.command, Command::Do { .. });
        if is_retried_step && is_remote && self.goes_back {
            // Its host may do it yet.
            self.steps[step].maybe = true;
        }
        // A sub-saga is looked at again.
        let is_child = self.shape.is_child(self.base(step)) && !is_list;
        match (action, stuck.command) {
            (Action::Retry, Command::Do { step }) if self.goes_back && !self.steps[step].maybe && !is_child => {
                self.settle(step);
            }
            (Action::Retry, command) => {
                let command = match command {
                    Command::Undo { step, round, known } => {
                        self.steps[step].was_tried |= !known;
                        Command::Undo { step, round, known: known || self.steps[step].undo_again }
                    }
                    command @ Command::Do { .. } => command,
                };
                self.close(step);
                self.open.push(Open { command, stuck: None });
                commands.push(command);
            }
            (Action::Choose { arm }, Command::Do { step }) => {
                self.settle(step);
                self.steps[step].passed = true;
                if self.shape.is_choice(step) {
                    self.leave_out(step, *arm);
                }
            }
            (Action::Skip | Action::Choose { .. }, command) => self.go_past(command),
            (Action::Force { completed, .. }, _) => {
                while let Some(stuck) = self.open.iter().find(|open| open.stuck.is_some()).copied() {
                    self.go_past(stuck.command);
                }
                self.ended = Some(if *completed { Status::Completed } else { Status::Compensated });
                self.goes_back = false;
                self.end_idle();
                if !completed {
                    // The person took care of what stands.
                    self.standing.clear();
                }
            }
        }
        commands.extend(self.next());
        commands
    }

    pub(super) fn go_past(&mut self, command: Command) {
        match command {
            Command::Do { step } => {
                self.settle(step);
                self.steps[step].passed = true;
                if self.shape.is_choice(step) {
                    self.leave_out(step, None);
                }
            }
            Command::Undo { step, .. } => {
                (self.steps[step].undo_again, self.steps[step].was_tried) = (false, false);
                self.standing.retain(|&other| other != step);
                self.close(step);
            }
        }
    }
}
