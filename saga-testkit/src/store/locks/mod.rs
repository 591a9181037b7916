//! Semantic locks.

pub(crate) mod hand_overs;
pub(crate) mod locks_in_transactions;
pub(crate) mod semantic_locks;
