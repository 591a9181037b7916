//! How a saga ended, and the callers that wait for it.

mod outcome;
mod waiters;
mod watcher;

pub use self::outcome::{CompensationCause, Outcome};
pub(crate) use self::outcome::{outcome_by, outcome_of};
pub(crate) use self::waiters::{Gone, OutcomeSlot, Waiters};
pub(crate) use self::watcher::OutcomeWatcher;
