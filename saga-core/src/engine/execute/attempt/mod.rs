//! Calls handlers: one attempt of a step, a compensation, or a batch.

mod attempts;
mod batch_attempt;
mod ending;
mod span;

pub(crate) use self::attempts::{Attempts, no_handler};
pub(crate) use self::batch_attempt::BatchAttempt;
pub(crate) use self::ending::erred;
pub(crate) use self::span::{in_span, span_of};
