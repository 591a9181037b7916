//! Why a message was not handled.

use crate::store::DeadLetterReason;

/// Why a message was not handled.
#[derive(Debug)]
pub(crate) enum HandleError {
    /// It cannot be handled: the reason, and the detail in a sentence.
    Dead(DeadLetterReason, String),
    /// It is tried again later.
    Later {
        /// In one sentence.
        why: String,
        /// Whether this counts as an attempt.
        is_counted: bool,
    },
}
