//! The store, with a file for each trait of the contract.

pub(super) mod application;
pub(super) mod changes;
pub(super) mod claims;
pub(super) mod connection;
pub(super) mod dead_letters;
pub(super) mod definitions;
pub(super) mod hints;
pub(super) mod idempotency;
pub(super) mod ids;
pub(super) mod inbox;
pub(super) mod lock_wait;
pub(super) mod members;
pub(super) mod migrate_saga;
pub(super) mod outbox;
pub(super) mod records;
pub(super) mod replay;
pub(super) mod sagas;
pub(super) mod semantic_locks;
pub(super) mod start_in;
pub(super) mod statement;
pub(super) mod store;
pub(super) mod transaction;
pub(super) mod unfinished;
pub(super) mod work;
