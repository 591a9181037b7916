use super::state::Failure;
use crate::step::Rejection;

/// Something that happened to a saga.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A step took effect.
    Done {
        /// The step.
        step: usize,
    },
    /// A step failed definitely, and took no effect.
    Rejected {
        /// The step.
        step: usize,
        /// Why.
        failure: Failure,
    },
    /// A step is out of attempts, and took no effect.
    Failed {
        /// The step.
        step: usize,
        /// Why.
        failure: Failure,
    },
    /// A step is out of attempts, or gives contradictory answers, and may have taken effect.
    Unknown {
        /// The step.
        step: usize,
        /// Why.
        failure: Failure,
    },
    /// A command was given back before it began, and never begins.
    Cancelled {
        /// The step.
        step: usize,
    },
    /// A step cannot go on without a person.
    Blocked {
        /// The step.
        step: usize,
        /// Why.
        reason: String,
        /// Whether it may have taken effect by now.
        in_doubt: bool,
    },
    /// The list that a step is to be done for is there.
    Listed {
        /// The step.
        step: usize,
        /// How many items the list has.
        items: usize,
    },
    /// A choice was made.
    Chosen {
        /// The choice.
        step: usize,
        /// Which of its arms runs, if any does.
        arm: Option<usize>,
    },
    /// A step was undone.
    Undone {
        /// The step.
        step: usize,
        /// Whether every call of this undo was given what the step returned. If not, a success that was reported in the
        /// meantime is still to be undone.
        informed: bool,
    },
    /// An undo cannot go on without a person.
    UndoBlocked {
        /// The step.
        step: usize,
        /// Why.
        reason: String,
    },
    /// An older owner reports a success after the step was decided without it.
    Late {
        /// The step.
        step: usize,
    },
    /// An older owner reports that its call ended without a definite answer, after the step was decided as if that call had
    /// not been made, or undone before the call had ended.
    LateUnknown {
        /// The step.
        step: usize,
    },
    /// Whoever asked for the saga, which is a hosted step, takes it back.
    TakenBack,
    /// The saga is called off before its pivot: it turns round although no step of it failed.
    CalledOff {
        /// Why.
        reason: Rejection,
        /// Whether a command of it may have been claimed. If not, all of them are taken back with this event.
        has_begun: bool,
    },
    /// A saga that has done nothing yet begins behind what another one of its definition did.
    TakenOver {
        /// The steps that the other one did.
        steps: Vec<usize>,
        /// Those in arms that it did not take.
        passed_by: Vec<usize>,
    },
    /// A person pauses the saga: nothing new of it begins.
    Paused {
        /// Who.
        by: Option<String>,
        /// Why.
        reason: String,
    },
    /// A command fell due while the saga is paused.
    Parked {
        /// Its work row.
        work: i64,
    },
    /// A person lets a paused saga go on.
    Resumed,
    /// A message from outside arrives for a step that waits for it.
    Signalled {
        /// The step.
        step: usize,
        /// What tells it from others, and is the same when it comes again.
        id: u128,
    },
    /// The saga's deadline passed, and the row that waited for that is gone.
    DeadlinePassed,
    /// An operator acts on a stuck saga.
    Operator(Action),
}

/// What an operator can do with a stuck saga.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Try what is stuck again, with fresh attempts.
    Retry,
    /// Go past what is stuck. A step that is skipped counts as done without an effect; an undo that is skipped leaves the effect as it is.
    Skip,
    /// Go past a choice that is stuck, as if it had been made so. For a step that is no choice it is [`Action::Skip`].
    Choose {
        /// Which of its arms runs, if any does.
        arm: Option<usize>,
    },
    /// End the saga as it is.
    Force {
        /// As completed, or as compensated.
        completed: bool,
        /// Why.
        reason: String,
    },
}

/// Why an operator's action, calling a saga off, pausing or resuming it, or a signal was refused. A deadline that passes too
/// late is refused as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The saga does not need a person.
    #[error("the saga is not stuck")]
    NotStuck,
    /// The saga has turned round before.
    #[error("the saga compensates already")]
    TurnedRound,
    /// The saga has come to its end.
    #[error("the saga has ended already")]
    Ended,
    /// The saga only goes forward.
    #[error("its pivot `{pivot}` is under way or done, and from there the saga only goes forward")]
    PastPivot {
        /// The pivot.
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
    Received,
    /// What a signal would decide is decided.
    #[error("it is decided already")]
    Decided,
    /// The saga has no deadline, or it says nothing any more.
    #[error("its deadline says nothing any more")]
    InTime,
    /// Another saga asked for it.
    #[error("it is a step of another service's saga, and ends with that: cancel that saga")]
    Hosted,
}
