//! What a step is told about its call, and what it tells while it runs.

pub(super) mod call_keys;
pub(super) mod cancel_signal;
pub(super) mod context;
pub(super) mod locked;
pub(super) mod optional_output;
pub(super) mod progress;
pub(super) mod reports;
