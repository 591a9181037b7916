//! Semantic locks: what is locked, who waits for it, and what a step transaction takes by itself.

pub(super) mod entity;
pub(super) mod lock_ring;
pub(super) mod locks_to_try;
pub(super) mod semantic_locks;
pub(super) mod wanted_lock;
