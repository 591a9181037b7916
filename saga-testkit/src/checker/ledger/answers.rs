//! What calls answered, and what operators and messages said.

use serde::{Deserialize, Serialize};

use crate::checker::{Op, Standing};

/// What is left of a saga that was purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Age {
    /// Its key and how it ended.
    Tombstone,
    /// Nothing.
    Deleted,
}

/// What a message between services is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Sent {
    /// Do this step.
    Command,
    /// Undo it.
    Undo,
    /// What became of one of these.
    Reply,
}

/// What `signal` answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receipt {
    /// It decides.
    Counts,
    /// The same one had been received.
    Known,
    /// It does not decide, or there is no saga that waits for it.
    Refused,
}

/// What `start` answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// There is such a saga now. `is_new` where the answer says whether this call made it.
    Started {
        /// Whether this call made it, where that is said.
        is_new: Option<bool>,
    },
    /// The key belongs to something else.
    Refused,
    /// It failed, and may be repeated.
    Failed,
}

/// What a step function returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Left {
    /// A success.
    Done,
    /// A business failure.
    Rejected,
    /// An error that says that the outside saw nothing.
    NotSent,
    /// Any other error: it may have happened.
    Failed,
}

/// What an operator did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Act {
    /// Try again.
    Retry,
    /// Go past the step.
    Skip {
        /// Which.
        step: u8,
        /// Do or undo.
        op: Op,
    },
    /// End it as completed or as compensated.
    Force(Standing),
}
