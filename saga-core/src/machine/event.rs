//! What can happen to a saga.

use super::state::failure::Failure;
use crate::step::Rejection;

/// Something that happened to a saga. A step is named by its index in the state.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A step took effect.
    Done {
        /// Its index.
        step: usize,
    },
    /// A step failed definitely, and took no effect.
    Rejected {
        /// Its index.
        step: usize,
        /// The business failure.
        failure: Failure,
    },
    /// A step is out of attempts, and took no effect.
    Failed {
        /// Its index.
        step: usize,
        /// The failure of the last attempt.
        failure: Failure,
    },
    /// A step is out of attempts, or gives contradictory answers, and may have taken effect.
    Unknown {
        /// Its index.
        step: usize,
        /// The failure of the last attempt.
        failure: Failure,
    },
    /// A command was given back before it began, and never begins.
    Cancelled {
        /// Its index.
        step: usize,
    },
    /// A step cannot go on without an operator.
    Blocked {
        /// Its index.
        step: usize,
        /// What the operator reads.
        reason: String,
        /// Whether it may have taken effect by now.
        in_doubt: bool,
    },
    /// The list of a step that runs once per item is known.
    Listed {
        /// Its index.
        step: usize,
        /// How many items the list has.
        items: usize,
    },
    /// A choice was made.
    Chosen {
        /// The index of the choice.
        step: usize,
        /// The arm that runs, if any does.
        arm: Option<usize>,
    },
    /// A step was undone.
    Undone {
        /// Its index.
        step: usize,
        /// Whether every call of this undo was given what the step returned. If not, a success that was reported in the
        /// meantime is still to be undone.
        informed: bool,
    },
    /// An undo cannot go on without an operator.
    UndoBlocked {
        /// Its index.
        step: usize,
        /// What the operator reads.
        reason: String,
    },
    /// A worker that lost its lease reports a success after the step was decided without it.
    LateSuccess {
        /// Its index.
        step: usize,
    },
    /// A worker that lost its lease reports that its call ended without a definite answer: after the step was decided as if
    /// that call had not been made, or was undone before the call had ended.
    LateUnknown {
        /// Its index.
        step: usize,
    },
    /// The saga is a hosted step, and the service that asked for it asks to undo it.
    UndoRequested,
    /// The saga is cancelled before its pivot: it compensates although no step of it failed.
    CancelRequested {
        /// Why.
        reason: Rejection,
        /// Whether a command of it may have been claimed. If not, all of them are withdrawn with this event.
        has_begun: bool,
    },
    /// A saga that has done nothing yet begins after the steps that another saga of its definition did.
    Restarted {
        /// The steps that the other saga did.
        steps: Vec<usize>,
        /// The steps in arms that it did not take.
        not_taken: Vec<usize>,
    },
    /// An operator pauses the saga: nothing new of it begins.
    Paused {
        /// The operator, where known.
        by: Option<String>,
        /// What the operator wrote.
        reason: String,
    },
    /// A command fell due while the saga is paused.
    Parked {
        /// Its work row.
        work: i64,
    },
    /// An operator takes a semantic lock from the saga.
    Unlocked {
        /// The index of the step that took it.
        step: usize,
    },
    /// An operator resumes a paused saga.
    Resumed,
    /// A signal arrives for a step that waits for it.
    Signalled {
        /// Its index.
        step: usize,
        /// The id of the signal: the same when it is sent again.
        id: u128,
    },
    /// The saga's deadline passed, and the row that waited for that is gone.
    DeadlinePassed,
    /// An operator acts on a stuck saga.
    Operator(Action),
}

impl Event {
    /// The step whose last call ended without a definite answer, if this is what happened.
    pub(crate) fn unanswered(&self) -> Option<usize> {
        match self {
            Self::Unknown { step, .. } | Self::LateUnknown { step } => Some(*step),
            _ => None,
        }
    }
}

/// What an operator can do with a stuck saga.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Tries what is stuck again, with fresh attempts.
    Retry,
    /// Skips what is stuck. A skipped step counts as done without an effect; a skipped undo leaves the effect as it is.
    Skip,
    /// Makes a choice that is stuck. For a step that is no choice it is [`Action::Skip`].
    Choose {
        /// The arm that runs, if any does.
        arm: Option<usize>,
    },
    /// Ends the saga as it is.
    Force {
        /// As completed, or as compensated.
        completed: bool,
        /// What the operator wrote.
        reason: String,
    },
}

/// Why an event was refused: an operator's action, cancelling, pausing or resuming a saga, taking a lock from it, a signal,
/// or a deadline that passed too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The saga is not stuck.
    #[error("the saga is not stuck")]
    NotStuck,
    /// The saga compensates already.
    #[error("the saga compensates already")]
    Compensating,
    /// The saga has ended already.
    #[error("the saga has ended already")]
    Ended,
    /// The saga only goes forward.
    #[error("its pivot `{pivot}` is under way or done, and from there the saga only goes forward")]
    PastPivot {
        /// The name of the pivot.
        pivot: &'static str,
    },
    /// The saga is paused already.
    #[error("the saga is paused already")]
    Paused,
    /// There is nothing to resume.
    #[error("the saga is not paused")]
    NotPaused,
    /// The signal was received before.
    #[error("the signal was received before")]
    Duplicate,
    /// The wait ended before the signal arrived.
    #[error("it is decided already")]
    Decided,
    /// The saga has no deadline, or has met it.
    #[error("the saga has no deadline, or has met it")]
    NoDeadline,
    /// The step took no semantic lock that the saga still has.
    #[error("it does not have this semantic lock")]
    NotLocked,
    /// A semantic lock is only taken from a saga that does nothing.
    #[error("it is neither stuck nor paused; pause it first, so that nothing of it runs without the lock")]
    NotHalted,
    /// A semantic lock is only taken from a saga that does nothing.
    #[error("a step of it is still under way; wait until it has ended, so that it does not run without the lock")]
    UnderWay,
    /// Another saga asked for it.
    #[error("it is a step of another service's saga, and ends with that: cancel that saga")]
    Hosted,
}
