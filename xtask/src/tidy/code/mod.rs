//! Rules about what the code does.

pub(super) mod leftovers;
pub(super) mod untested_target;
pub(super) mod unwinding;
