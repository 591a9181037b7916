//! What a step takes beside its input.

pub(super) mod list;
pub(super) mod lock;
pub(super) mod locked_entity;
pub(super) mod output;
pub(super) mod params;
pub(super) mod semantic_lock;
pub(super) mod signal;
pub(super) mod state;
pub(super) mod step_outputs;
