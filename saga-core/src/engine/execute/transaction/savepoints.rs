//! Which handlers of a step transaction share a savepoint.
//!
//! Handlers of a step that seldom fails run behind one savepoint, and count once the last of them has ended. If one fails, the
//! writes of all of them are rolled back, and each of the others runs again. A handler that broke the transaction is found at the
//! next savepoint, before another handler runs.

use crate::engine::instance::AttemptResult;
use crate::engine::queue::Protection;
use crate::machine::Next;

/// The index of a member, the result of its attempt, and what follows from it.
pub(crate) type EndedAttempt = (usize, (AttemptResult, Next));

/// The latest savepoint of a transaction.
#[derive(Debug, Default)]
pub(crate) enum Savepoints {
    /// The store sets one before each handler, without asking.
    #[default]
    Each,
    /// Before the present handler.
    Own,
    /// None for the present handler.
    Spared,
    /// Before the first of several handlers.
    Shared {
        /// How many handlers may share it.
        most: usize,
        /// The attempts that have ended, and wait for the others.
        ended: Vec<EndedAttempt>,
    },
    /// This many attempts were rolled back, and run again.
    RolledBack(usize),
}

impl Savepoints {
    /// Whether a handler that needs this protection needs a savepoint in front of it.
    pub(crate) fn before(&mut self, protection: Protection) -> bool {
        *self = match (&self, protection) {
            // `CallPlan` and `is_joined` have made sure that it may join.
            (Self::Shared { .. }, _) => return false,
            (Self::RolledBack(again), Protection::Shared(_)) => Self::Shared { most: *again, ended: Vec::new() },
            (_, Protection::Shared(most)) => Self::Shared { most, ended: Vec::new() },
            (_, Protection::Own) => Self::Own,
            (_, Protection::Spared) => Self::Spared,
        };
        !matches!(self, Self::Spared)
    }

    /// Whether the writes of the present handler cannot be rolled back without the whole transaction.
    pub(crate) fn has_none(&self) -> bool {
        matches!(self, Self::Spared)
    }

    /// The attempts whose savepoint the next handler may share.
    pub(crate) fn open(&self) -> Option<&[EndedAttempt]> {
        match self {
            Self::Shared { most, ended } if ended.len() < *most => Some(ended),
            _ => None,
        }
    }

    /// Keeps the writes of an attempt. Returns it, with those that waited, if no other handler joins them.
    pub(crate) fn keep(&mut self, attempt: EndedAttempt) -> Option<EndedAttempt> {
        match self {
            Self::Shared { ended, .. } => {
                ended.push(attempt);
                None
            }
            _ => Some(attempt),
        }
    }

    /// Returns the waiting attempts: no other handler joins them.
    pub(crate) fn close(&mut self) -> Vec<EndedAttempt> {
        match std::mem::replace(self, Self::Own) {
            Self::Shared { ended, .. } => ended,
            _ => Vec::new(),
        }
    }

    /// The writes behind the savepoint are rolled back. Returns the attempts that run again.
    pub(crate) fn roll_back(&mut self) -> Vec<EndedAttempt> {
        let Self::Shared { ended, .. } = self else { return Vec::new() };
        let again = std::mem::take(ended);
        *self = if again.is_empty() { Self::Own } else { Self::RolledBack(again.len()) };
        again
    }
}
