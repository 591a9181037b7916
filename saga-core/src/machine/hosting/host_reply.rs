//! The replies between services about a hosted step, and what follows from them.

use crate::machine::event::Event;
use crate::machine::state::failure::{Failure, FailureKind};
use crate::machine::state::remote::Sent;
use crate::machine::state::state::{Phase, SagaState};
use crate::machine::state::step_state::{StepPhase, StepState};
use crate::step::Rejection;
use crate::store::Answer;

/// The answer of a hosted step in this state, if there is one yet.
pub fn answer_of(state: &SagaState) -> Option<Answer> {
    let caller = state.caller.as_ref()?;
    if state.stuck.is_some() {
        return Some(Answer::Stuck);
    }
    match state.phase {
        Phase::Running | Phase::Compensating => None,
        Phase::Completed => Some(Answer::Done),
        Phase::Compensated if caller.undo.is_some() => Some(Answer::Undone),
        Phase::Compensated => Some(match state.steps.first().map(|step| step.phase) {
            Some(StepPhase::Rejected) => Answer::Rejected,
            Some(StepPhase::Cancelled) => Answer::Cancelled,
            // Whatever effect it may have had was undone here: for the caller it is a failure without effect.
            _ => Answer::Failed,
        }),
    }
}

/// The answer to a repeated request, if there is one yet.
pub fn answer_again(state: &SagaState, is_undo: bool) -> Option<Answer> {
    answer_of(state).map(|answer| match answer {
        // A command that arrives after its undo is never done.
        Answer::Undone if !is_undo => Answer::Cancelled,
        answer => answer,
    })
}

/// Whether a hosted step completed although its undo was requested: it was stuck, and an operator let it complete.
pub fn must_undo(state: &SagaState) -> bool {
    state.phase == Phase::Completed && state.caller.as_ref().is_some_and(|caller| caller.undo.is_some())
}

/// The command that a reply answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnsweredCommand {
    /// Whether it was an undo.
    pub undo: bool,
    /// The message that was sent.
    pub sent: Sent,
}

/// The command of the step that a reply to this message answers; nothing where the saga does not wait for it.
pub fn answered_command(step: &StepState, message: u128) -> Option<AnsweredCommand> {
    let is_sent = |sent: &Sent| sent.message == message;
    if let Some(sent) = step.undo_sent.filter(is_sent) {
        return (step.phase == StepPhase::Undoing).then_some(AnsweredCommand { undo: true, sent });
    }
    step.sent.filter(is_sent).map(|sent| AnsweredCommand { undo: false, sent })
}

/// What follows from the answer of a host, with the reason that it gave.
pub fn event_of_answer(step: usize, undo: bool, answer: Answer, reason: &Rejection, host: &str) -> Event {
    let failure = |kind| Failure { step, kind, reason: reason.clone() };
    let host_says = || format!("`{host}` says: {}", reason.message());
    if undo {
        return match answer {
            // A step that never began needs no undo.
            Answer::Undone | Answer::Cancelled | Answer::Rejected | Answer::Failed => {
                Event::Undone { step, informed: false }
            }
            _ => Event::UndoBlocked { step, reason: host_says() },
        };
    }
    match answer {
        Answer::Done => Event::Done { step },
        Answer::Rejected => Event::Rejected { step, failure: failure(FailureKind::Rejected) },
        Answer::Failed => Event::Failed { step, failure: failure(FailureKind::Failed) },
        Answer::Cancelled | Answer::Undone => {
            let message = format!("`{host}` has barred it");
            Event::Failed { step, failure: Failure::new(step, FailureKind::Failed, message) }
        }
        Answer::Unknown => Event::Unknown { step, failure: failure(FailureKind::Unknown) },
        Answer::Refused => Event::Blocked { step, reason: host_says(), in_doubt: false },
        Answer::Stuck => Event::Blocked { step, reason: host_says(), in_doubt: true },
    }
}
