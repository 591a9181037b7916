//! The store, with a file for each trait of the contract.

pub(super) mod dead_letters;
pub(super) mod definitions;
pub(super) mod hints;
pub(super) mod idempotency;
pub(super) mod inbox;
pub(super) mod members;
pub(super) mod outbox;
pub(super) mod purge;
pub(super) mod records;
pub(super) mod sagas;
pub(super) mod semantic_locks;
pub(super) mod start_in;
pub(super) mod store;
pub(super) mod transaction;
pub(super) mod unclosed;
pub(super) mod work;
