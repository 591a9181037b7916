//! Why a message was not handled.

use crate::store::DeadLetterReason;

/// Why a message was not handled.
#[derive(Debug)]
pub(crate) enum HandleError {
    /// It never will be: the reason, and the same in a sentence.
    Dead(DeadLetterReason, String),
    /// It may be later.
    Later {
        /// In words.
        why: String,
        /// Whether that counts as an attempt.
        is_counted: bool,
    },
}
