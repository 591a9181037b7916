//! Whether the saga still wants a command that was claimed.

use super::decision::Command;
use super::event::Event;
use super::hosting::choreography::is_undo_requested_by_event;
use super::operating::lock_lost::lost_lock;
use super::state::failure::{Failure, FailureKind};
use super::state::shape::{Effect, Shape, UndoShape};
use super::state::state::{Phase, SagaState};
use super::state::step_state::StepPhase;

/// The reason as it is stored.
const OWNER_VANISHED: &str = "its owner vanished, and the saga turned round";

/// The work row of a command, as it was claimed.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ClaimedRow {
    /// The command.
    pub command: Command,
    /// Where the command takes effect.
    pub effect: Effect,
    /// How its step is undone.
    pub undo: UndoShape,
    /// Whether an attempt ended without a definite answer.
    pub in_doubt: bool,
    /// Whether it was claimed before by a process that ended.
    pub recovered: bool,
    /// Whether an earlier owner noted a success on it.
    pub is_late: bool,
    /// Whether the step has a resolution.
    pub has_resolution: bool,
}

impl ClaimedRow {
    /// A row that was not claimed before, of a step without a resolution.
    pub fn first(command: Command, effect: Effect, undo: UndoShape) -> Self {
        Self { command, effect, undo, in_doubt: false, recovered: false, is_late: false, has_resolution: false }
    }

    /// Whether it may have taken effect by now: the earlier owner may have made the call, or one was made before the step got
    /// stuck.
    pub fn may_have_happened(&self, state: &SagaState) -> bool {
        let tried_before = matches!(self.command, Command::Do { step } if state.steps[step].in_doubt);
        self.in_doubt || (self.effect.is_outside() && (self.recovered || tried_before))
    }

    /// What follows where the saga started compensating, or was ended by an operator, before the command began; nothing where
    /// the saga still wants the command.
    pub fn unwanted(&self, state: &SagaState) -> Option<Event> {
        // The saga of the event is over: a step that certainly has not happened is not tried again.
        let is_obsolete = is_undo_requested_by_event(state) && !self.in_doubt && !self.is_late;
        let is_wanted = is_wanted(state, self.command) || self.awaits_host(state) || self.awaits_resolution(state);
        if is_wanted && !is_obsolete {
            return None;
        }
        Some(match self.command {
            Command::Undo { step, .. } => Event::UndoBlocked { step, reason: "the saga does not compensate".into() },
            // It did happen: an earlier owner noted it.
            Command::Do { step } if self.is_late => Event::Done { step },
            // A remote step may have been done by its host.
            Command::Do { step } if self.in_doubt || matches!(self.effect, Effect::Remote { .. }) => {
                Event::Unknown { step, failure: Failure::new(step, FailureKind::Unknown, OWNER_VANISHED) }
            }
            Command::Do { step } => Event::Cancelled { step },
        })
    }

    /// What follows where an operator took a semantic lock from the saga: it begins no step any more. A step in doubt is called
    /// again, since the answer says whether there is anything to undo.
    pub fn without_lock(&self, shape: &Shape, state: &SagaState) -> Option<Event> {
        let Command::Do { step } = self.command else { return None };
        let begins = state.phase == Phase::Running && !self.in_doubt && !self.is_late;
        let reason = lost_lock(shape, state).filter(|_| begins)?;
        Some(Event::Blocked { step, reason, in_doubt: self.may_have_happened(state) })
    }

    /// A host may do a step that it was asked for at any time. An undo that is sent for the step prevents that. A step that
    /// needs no undo is asked for until there is an answer, or it would take effect in a saga that is over.
    fn awaits_host(&self, state: &SagaState) -> bool {
        let Command::Do { step } = self.command else { return false };
        let is_remote = matches!(self.effect, Effect::Remote { .. });
        is_remote
            && self.undo == UndoShape::NotNeeded
            && state.phase == Phase::Compensating
            && state.steps[step].phase == StepPhase::Started
    }

    /// A step in doubt is resolved also while the saga compensates, so that it is undone only if it took effect.
    fn awaits_resolution(&self, state: &SagaState) -> bool {
        let Command::Do { step } = self.command else { return false };
        let is_open = state.phase == Phase::Compensating && state.steps[step].phase == StepPhase::Started;
        is_open && self.has_resolution && self.in_doubt && !self.is_late
    }
}

fn is_wanted(state: &SagaState, command: Command) -> bool {
    match command {
        // A step in doubt is called again also while the saga compensates, if an operator retries it.
        Command::Do { step } => {
            let is_retried = state.phase == Phase::Compensating && state.steps[step].in_doubt;
            (state.phase == Phase::Running || is_retried) && state.steps[step].phase == StepPhase::Started
        }
        Command::Undo { step, .. } => {
            state.phase == Phase::Compensating && state.steps[step].phase == StepPhase::Undoing
        }
    }
}
