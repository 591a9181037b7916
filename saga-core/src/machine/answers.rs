//! What services tell each other of a hosted step, and what follows from it.

use super::compensate::begin_compensation;
use super::decision::Decision;
use super::event::Event;
use super::remote::Sent;
use super::shape::Shape;
use super::state::{Failure, FailureKind, Phase, SagaState, StepPhase, StepState};
use super::transition::start;
use crate::step::Rejection;
use crate::store::Answer;

/// What there is to tell of a hosted step in this state.
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
            // What it may have done was undone here: it stands for a failure without effect.
            _ => Answer::Failed,
        }),
    }
}

/// What is told when the same is asked again, if there is anything to tell yet.
pub fn answer_again(state: &SagaState, is_undo: bool) -> Option<Answer> {
    answer_of(state).map(|answer| match answer {
        // A command that comes behind its undo is barred.
        Answer::Undone if !is_undo => Answer::Cancelled,
        answer => answer,
    })
}

/// Whether a hosted step came to its end although it had been taken back: a person, who was asked first, let it.
pub fn is_to_be_taken_back(state: &SagaState) -> bool {
    state.phase == Phase::Completed && state.caller.as_ref().is_some_and(|caller| caller.undo.is_some())
}

/// A hosted step that is taken back before anything else was heard of it, and the event that decides about it: what is
/// known to be done is undone from what the message carries, and what is not is barred.
pub fn unseen(shape: &Shape, is_done: bool) -> (SagaState, Event) {
    let (mut state, _) = start(shape);
    if is_done {
        return (state, Event::Done { step: 0 });
    }
    state.steps[0].phase = StepPhase::Ready;
    (state, Event::TakenBack)
}

/// A command that a saga is told about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnsweredCommand {
    /// Whether it was an undo.
    pub undo: bool,
    /// What was sent.
    pub sent: Sent,
}

/// What a reply is about that names the message `asked`; nothing where nobody waits for it.
pub fn told(step: &StepState, asked: u128) -> Option<AnsweredCommand> {
    let is_asked = |sent: &Sent| sent.message == asked;
    if let Some(sent) = step.undo_sent.filter(is_asked) {
        return (step.phase == StepPhase::Undoing).then_some(AnsweredCommand { undo: true, sent });
    }
    step.sent.filter(is_asked).map(|sent| AnsweredCommand { undo: false, sent })
}

/// What follows from the answer of a host. `said` is its reason, where it gave one.
pub fn event_of_answer(step: usize, undo: bool, answer: Answer, said: &Rejection, host: &str) -> Event {
    let failure = |kind| Failure { step, kind, reason: said.clone() };
    let needs_person = || format!("`{host}` says: {}", said.message());
    if undo {
        return match answer {
            // What never began needs no undoing.
            Answer::Undone | Answer::Cancelled | Answer::Rejected | Answer::Failed => {
                Event::Undone { step, informed: false }
            }
            _ => Event::UndoBlocked { step, reason: needs_person() },
        };
    }
    match answer {
        Answer::Done => Event::Done { step },
        Answer::Rejected => Event::Rejected { step, failure: failure(FailureKind::Rejected) },
        Answer::Failed => Event::Failed { step, failure: failure(FailureKind::Failed) },
        Answer::Cancelled | Answer::Undone => {
            let reason = Rejection::new(format!("`{host}` has barred it"));
            Event::Failed { step, failure: Failure { reason, ..failure(FailureKind::Failed) } }
        }
        Answer::Unknown => Event::Unknown { step, failure: failure(FailureKind::Unknown) },
        Answer::Refused => Event::Blocked { step, reason: needs_person(), in_doubt: false },
        Answer::Stuck => Event::Blocked { step, reason: needs_person(), in_doubt: true },
    }
}

/// Whoever asked for the saga takes it back: what took effect is undone, and what did not begin never does. What is in
/// flight, or needs a person, comes to its end first: only then is it known whether there is anything to undo.
pub(super) fn taken_back(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    let in_flight = |phase| matches!(phase, StepPhase::Started | StepPhase::Undoing);
    let is_open = state.stuck.is_some() || state.steps.iter().any(|step| in_flight(step.phase));
    if !is_open && matches!(state.phase, Phase::Running | Phase::Completed) {
        let reason = Rejection::new("the saga that asked for it compensates");
        let failure = Failure { step: 0, kind: FailureKind::Rejected, reason };
        begin_compensation(shape, state, Some(failure), decision);
    }
}
