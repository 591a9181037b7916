//! Messages: what they are, on their way out, received, and as dead letters.

pub(super) mod dead_letters;
pub(super) mod headers;
pub(super) mod inbox;
pub(super) mod lane;
pub(super) mod message;
pub(super) mod outbox;
