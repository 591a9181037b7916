//! What becomes of a command that is claimed.

use super::decision::Command;
use super::event::Event;
use super::shape::Effect;
use super::state::{Failure, FailureKind, Phase, SagaState, StepPhase};
use crate::step::Rejection;

/// A row that asks for a command, as it was claimed.
#[derive(Debug, Clone, Copy)]
pub struct ClaimedRow {
    /// What it asks for.
    pub command: Command,
    /// Where the effect of that lies.
    pub effect: Effect,
    /// Whether an attempt ended without a definite answer.
    pub maybe: bool,
    /// Whether it was taken from an owner that vanished.
    pub suspect: bool,
    /// Whether an older owner noted its success.
    pub is_late: bool,
    /// Whether the other side can be asked what became of it.
    pub can_be_asked: bool,
}

impl ClaimedRow {
    /// Whether it may have taken effect by now: the owner that vanished may have made the call, or one that was made
    /// before a person was called.
    pub fn may_have_happened(&self, state: &SagaState) -> bool {
        let tried_before = matches!(self.command, Command::Do { step } if state.steps[step].maybe);
        self.maybe || (self.effect.is_outside() && (self.suspect || tried_before))
    }

    /// What follows where the saga turned round, or was ended by an operator, before the command began; nothing where the
    /// saga still wants what the command says.
    pub fn unwanted(&self, state: &SagaState) -> Option<Event> {
        if is_wanted(state, self.command) || self.is_asked_for(state) {
            return None;
        }
        Some(match self.command {
            Command::Undo { step, .. } => Event::UndoBlocked { step, reason: "the saga does not compensate".into() },
            // It did happen, in the hands of an older owner.
            Command::Do { step } if self.is_late => Event::Done { step },
            // What was sent to another service may have been done there.
            Command::Do { step } if self.maybe || matches!(self.effect, Effect::Remote { .. }) => {
                let reason = Rejection::new("its owner vanished, and the saga turned round");
                Event::Unknown { step, failure: Failure { step, kind: FailureKind::Unknown, reason } }
            }
            Command::Do { step } => Event::Cancelled { step },
        })
    }
}

impl ClaimedRow {
    /// What may have happened is asked for also while the saga compensates, so that only what did is undone.
    fn is_asked_for(&self, state: &SagaState) -> bool {
        let Command::Do { step } = self.command else { return false };
        let is_open = state.phase == Phase::Compensating && state.steps[step].phase == StepPhase::Started;
        is_open && self.can_be_asked && self.maybe && !self.is_late
    }
}

fn is_wanted(state: &SagaState, command: Command) -> bool {
    match command {
        // What may have happened is asked again also while the saga compensates, if a person wants that.
        Command::Do { step } => {
            let is_asked = state.phase == Phase::Compensating && state.steps[step].maybe;
            (state.phase == Phase::Running || is_asked) && state.steps[step].phase == StepPhase::Started
        }
        Command::Undo { step, .. } => {
            state.phase == Phase::Compensating && state.steps[step].phase == StepPhase::Undoing
        }
    }
}
