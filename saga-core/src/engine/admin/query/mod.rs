//! What an operator reads of sagas.

pub(crate) mod json;
pub(super) mod lock_query;
pub(super) mod lock_status;
pub(super) mod outline;
pub(super) mod query;
pub(super) mod saga_moves;
pub(super) mod status;
pub(super) mod step_status;
pub(super) mod timelines;
