//! What happens inside a step transaction.

pub(super) mod aborted;
pub(super) mod grant;
pub(super) mod handlers;
pub(super) mod taken_locks;
