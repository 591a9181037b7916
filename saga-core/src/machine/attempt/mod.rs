//! What follows from an attempt: whether it is tried again, and what its end means.

pub(super) mod after_attempt;
pub(super) mod attempt;
pub(super) mod backoff;
pub(super) mod exhausted;
pub(super) mod resolve;
