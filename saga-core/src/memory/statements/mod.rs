//! What the calls of the contract check and write in the tables.

pub(super) mod changes;
pub(super) mod claims;
pub(super) mod migrate_saga;
pub(super) mod taken_locks;
pub(super) mod unlock;
