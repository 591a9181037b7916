//! What becomes of a command that is claimed.

use super::choreography::is_given_up;
use super::decision::Command;
use super::event::Event;
use super::shape::{Effect, UndoShape};
use super::state::{Failure, FailureKind, Phase, SagaState, StepPhase};
use crate::step::Rejection;

/// A row that asks for a command, as it was claimed.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ClaimedRow {
    /// What it asks for.
    pub command: Command,
    /// Where the effect of that lies.
    pub effect: Effect,
    /// How its step is undone.
    pub undo: UndoShape,
    /// Whether an attempt ended without a definite answer.
    pub in_doubt: bool,
    /// Whether it was taken from an owner that vanished.
    pub recovered: bool,
    /// Whether an older owner noted its success.
    pub is_late: bool,
    /// Whether the other side can be asked what became of it.
    pub can_be_asked: bool,
}

impl ClaimedRow {
    /// Whether it may have taken effect by now: the owner that vanished may have made the call, or one that was made
    /// before a person was called.
    pub fn may_have_happened(&self, state: &SagaState) -> bool {
        let tried_before = matches!(self.command, Command::Do { step } if state.steps[step].in_doubt);
        self.in_doubt || (self.effect.is_outside() && (self.recovered || tried_before))
    }

    /// What follows where the saga turned round, or was ended by an operator, before the command began; nothing where the
    /// saga still wants what the command says.
    pub fn unwanted(&self, state: &SagaState) -> Option<Event> {
        // Whatever it was asked for is over: it is not tried again, where it certainly has not happened.
        let is_given_up = is_given_up(state) && !self.in_doubt && !self.is_late;
        let is_wanted = is_wanted(state, self.command) || self.is_awaited(state) || self.is_asked_for(state);
        if is_wanted && !is_given_up {
            return None;
        }
        Some(match self.command {
            Command::Undo { step, .. } => Event::UndoBlocked { step, reason: "the saga does not compensate".into() },
            // It did happen, in the hands of an older owner.
            Command::Do { step } if self.is_late => Event::Done { step },
            // What was sent to another service may have been done there.
            Command::Do { step } if self.in_doubt || matches!(self.effect, Effect::Remote { .. }) => {
                let reason = Rejection::new("its owner vanished, and the saga turned round");
                Event::Unknown { step, failure: Failure { step, kind: FailureKind::Unknown, reason } }
            }
            Command::Do { step } => Event::Cancelled { step },
        })
    }

    /// What another service was asked for may be done there at any time. Where an undo is sent for it, that bars it; what
    /// needs none is asked for until there is an answer, or it would take effect in a saga that is over.
    fn is_awaited(&self, state: &SagaState) -> bool {
        let Command::Do { step } = self.command else { return false };
        let is_remote = matches!(self.effect, Effect::Remote { .. });
        is_remote
            && self.undo == UndoShape::NotNeeded
            && state.phase == Phase::Compensating
            && state.steps[step].phase == StepPhase::Started
    }

    /// What may have happened is asked for also while the saga compensates, so that only what did is undone.
    fn is_asked_for(&self, state: &SagaState) -> bool {
        let Command::Do { step } = self.command else { return false };
        let is_open = state.phase == Phase::Compensating && state.steps[step].phase == StepPhase::Started;
        is_open && self.can_be_asked && self.in_doubt && !self.is_late
    }
}

fn is_wanted(state: &SagaState, command: Command) -> bool {
    match command {
        // What may have happened is asked again also while the saga compensates, if a person wants that.
        Command::Do { step } => {
            let is_asked = state.phase == Phase::Compensating && state.steps[step].in_doubt;
            (state.phase == Phase::Running || is_asked) && state.steps[step].phase == StepPhase::Started
        }
        Command::Undo { step, .. } => {
            state.phase == Phase::Compensating && state.steps[step].phase == StepPhase::Undoing
        }
    }
}
