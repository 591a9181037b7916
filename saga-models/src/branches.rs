//! Mistakes about branches, made in what the machine decided.

use saga_core::machine::{Command, Decision, Phase, SagaState, Shape, StepPhase};

use crate::plant::Plant;
use crate::protocol::Protocol;

impl Protocol {
    /// Makes of a decision what a machine with the mistake would have decided.
    pub(crate) fn spoil_branches(&self, shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
        match self.plant {
            Some(Plant::JoinsWithEachBranch) if state.phase == Phase::Running => join_early(shape, state, decision),
            Some(Plant::UndoesBesideWhatRuns) if state.phase == Phase::Compensating => undo_early(state, decision),
            Some(Plant::UndoesOneBranch) => undo_one(state, decision),
            _ => {}
        }
    }
}

fn join_early(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    for step in 0..state.steps.len() {
        let mut before = shape.predecessors(step);
        if state.steps[step].phase == StepPhase::Ready && before.any(|one| state.steps[one].phase == StepPhase::Done) {
            state.steps[step].phase = StepPhase::Started;
            decision.commands.push(Command::Do { step });
        }
    }
}

fn undo_early(state: &mut SagaState, decision: &mut Decision) {
    for (step, done) in state.steps.iter_mut().enumerate().filter(|(_, step)| step.phase == StepPhase::Done) {
        done.phase = StepPhase::Undoing;
        done.undo_round += 1;
        decision.commands.push(Command::Undo { step, round: done.undo_round, known: true });
    }
}

fn undo_one(state: &mut SagaState, decision: &mut Decision) {
    let mut has_one = false;
    decision.commands.retain(|command| match *command {
        Command::Undo { step, .. } if std::mem::replace(&mut has_one, true) => {
            state.steps[step].phase = StepPhase::UndoSkipped;
            false
        }
        _ => true,
    });
}
