//! How a saga ended, and the callers that wait for it.

mod failure;
mod outcome;
mod result;
mod waiters;
mod watcher;

pub use self::failure::SagaFailure;
pub use self::outcome::{CompensationCause, Outcome};
pub(crate) use self::outcome::{outcome_by, outcome_of};
pub use self::result::SagaResult;
pub(crate) use self::waiters::{Gone, OutcomeSlot, Waiters};
pub(crate) use self::watcher::OutcomeWatcher;
