//! What is decided of steps that events ask for.

use super::answers::answer_of;
use super::remote::Caller;
use super::state::{Failure, Phase, SagaState};
use crate::store::Answer;

/// What became of the pivot when the deadline of its saga passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtDeadline {
    /// It has not begun: it is barred, and everybody is told that the saga is over.
    Bar,
    /// It is on its way, or needs a person: its end decides.
    Wait,
    /// It has come to its end, and what follows from that was told.
    Decided,
}

/// Why a step came to nothing, where that is news: it was rejected or failed, and has not been taken back. `before` is
/// what there was to tell of it before it moved.
pub fn failed_by_now(before: Option<Answer>, state: &SagaState) -> Option<&Failure> {
    let answer = answer_of(state).filter(|answer| Some(*answer) != before)?;
    state.failure.as_ref().filter(|_| matches!(answer, Answer::Rejected | Answer::Failed))
}

/// Whether an event has taken back a step that another one asked for, which is still to be done.
pub(super) fn is_given_up(state: &SagaState) -> bool {
    let is_taken_back = |caller: &Caller| caller.reply_to.is_empty() && caller.undo.is_some();
    state.phase == Phase::Running && state.caller.as_deref().is_some_and(is_taken_back)
}

/// Decides at a deadline, by what is known of the pivot.
pub fn at_deadline(pivot: Option<&SagaState>) -> AtDeadline {
    match pivot.map(answer_of) {
        None => AtDeadline::Bar,
        Some(None | Some(Answer::Stuck)) => AtDeadline::Wait,
        Some(Some(_)) => AtDeadline::Decided,
    }
}
