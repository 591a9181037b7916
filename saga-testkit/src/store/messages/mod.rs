//! Messages: received, on their way out, and as dead letters.

pub(crate) mod hints;
pub(crate) mod inbox;
pub(crate) mod lanes;
pub(crate) mod letters;
pub(crate) mod outbox;
