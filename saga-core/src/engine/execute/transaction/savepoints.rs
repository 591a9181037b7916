//! Which handlers of a step transaction share a savepoint.
//!
//! Handlers of a step that seldom fails run behind one savepoint, and count once the last of them was called. If one
//! fails, the writes of all of them are rolled back, and each of the others runs again behind its own savepoint. So a
//! handler that broke the transaction is found by the next savepoint, and not by an innocent handler.

use crate::engine::instance::AttemptResult;
use crate::engine::queue::Protection;
use crate::machine::Next;

/// An attempt that was made, with what follows from it, and whose it was.
pub(crate) type Made = (usize, (AttemptResult, Next));

/// Where the last savepoint of a transaction stands.
#[derive(Debug, Default)]
pub(crate) enum Savepoints {
    /// The store sets one in front of each handler, and does not ask.
    #[default]
    Each,
    /// In front of the present handler.
    Own,
    /// The present handler has none.
    Spared,
    /// In front of the first of several.
    Shared {
        /// How many there may be.
        most: usize,
        /// Those that were called, and wait for the others.
        made: Vec<Made>,
    },
    /// So many were rolled back to it that are to run again.
    RolledBack(usize),
}

impl Savepoints {
    /// Whether a handler that needs this protection needs a savepoint in front of it.
    pub(crate) fn before(&mut self, protection: Protection) -> bool {
        *self = match (&self, protection) {
            // It was found to belong to them.
            (Self::Shared { .. }, _) => return false,
            (Self::RolledBack(again), Protection::Shared(_)) => Self::Shared { most: *again, made: Vec::new() },
            (_, Protection::Shared(most)) => Self::Shared { most, made: Vec::new() },
            (_, Protection::Own) => Self::Own,
            (_, Protection::Spared) => Self::Spared,
        };
        !matches!(self, Self::Spared)
    }

    /// Whether what the present handler wrote cannot be taken back alone, nor with a few others.
    pub(crate) fn has_none(&self) -> bool {
        matches!(self, Self::Spared)
    }

    /// Whose attempts lie behind the same savepoint as the next one may.
    pub(crate) fn open(&self) -> Option<&[Made]> {
        match self {
            Self::Shared { most, made } if made.len() < *most => Some(made),
            _ => None,
        }
    }

    /// Keeps the writes of an attempt. Returns it, with those that waited, if no other handler joins them.
    pub(crate) fn keep(&mut self, attempt: Made) -> Option<Made> {
        match self {
            Self::Shared { made, .. } => {
                made.push(attempt);
                None
            }
            _ => Some(attempt),
        }
    }

    /// No other handler joins those behind the savepoint.
    pub(crate) fn close(&mut self) -> Vec<Made> {
        match std::mem::replace(self, Self::Own) {
            Self::Shared { made, .. } => made,
            _ => Vec::new(),
        }
    }

    /// What was written behind the savepoint is taken back: those who are to run again.
    pub(crate) fn roll_back(&mut self) -> Vec<Made> {
        let Self::Shared { made, .. } = self else { return Vec::new() };
        let again = std::mem::take(made);
        *self = if again.is_empty() { Self::Own } else { Self::RolledBack(again.len()) };
        again
    }
}
