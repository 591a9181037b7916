//! Calls handlers: one attempt of a step, a compensation, or a batch.

mod attempts;
mod batch_attempt;
mod ending;

pub(crate) use self::attempts::{Attempts, no_handler};
pub(crate) use self::batch_attempt::BatchAttempt;
pub(crate) use self::ending::{erred, span_of};
