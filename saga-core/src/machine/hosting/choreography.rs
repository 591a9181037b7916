//! Decisions about steps that events ask for.

use super::host_reply::answer_of;
use crate::machine::state::failure::Failure;
use crate::machine::state::remote::Caller;
use crate::machine::state::state::{Phase, SagaState};
use crate::store::Answer;

/// What follows when the deadline of a choreographed saga passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtDeadline {
    /// The pivot has not begun: it gets a tombstone, and the other services hear that the saga is over.
    Tombstone,
    /// The pivot is in flight or stuck: its outcome decides.
    Wait,
    /// The pivot has an outcome, and the events that follow from it were published.
    Decided,
}

/// Why a step failed, where that is news: it was rejected or failed, and its undo was not requested. `before` is its answer
/// before it moved.
pub fn failed_by_now(before: Option<Answer>, state: &SagaState) -> Option<&Failure> {
    let answer = answer_of(state).filter(|answer| Some(*answer) != before)?;
    state.failure.as_ref().filter(|_| matches!(answer, Answer::Rejected | Answer::Failed))
}

/// Whether an event asks to undo a step that another event asked for, and the step is still to be done.
pub(in crate::machine) fn is_undo_requested_by_event(state: &SagaState) -> bool {
    let is_requested = |caller: &Caller| caller.reply_to.is_empty() && caller.undo.is_some();
    state.phase == Phase::Running && state.caller.as_deref().is_some_and(is_requested)
}

/// Decides at a deadline by the state of the pivot, if there is one.
pub fn at_deadline(pivot: Option<&SagaState>) -> AtDeadline {
    match pivot.map(answer_of) {
        None => AtDeadline::Tombstone,
        Some(None | Some(Answer::Stuck)) => AtDeadline::Wait,
        Some(Some(_)) => AtDeadline::Decided,
    }
}
