//! What an operator does to one saga.

pub(super) mod cancel;
pub(super) mod control_error;
pub(super) mod control_outcome;
pub(super) mod due_now;
pub(super) mod migrate;
pub(super) mod pause;
pub(super) mod restart;
pub(super) mod retry_now;
pub(super) mod saga_control;
pub(super) mod semantic_lock;
pub(super) mod signal;
pub(super) mod stuck;
pub(super) mod stuck_action;
pub(super) mod stuck_input;
