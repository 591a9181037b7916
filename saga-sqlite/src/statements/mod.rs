//! What the calls of the contract check, read and write in the tables.

pub(super) mod changes;
pub(super) mod claims;
pub(super) mod definition_numbers;
pub(super) mod ended;
pub(super) mod expiry;
pub(super) mod family;
pub(super) mod kept_requests;
pub(super) mod keyed_job;
pub(super) mod lock_table;
pub(super) mod migrate_saga;
pub(super) mod published;
pub(super) mod purge_sagas;
pub(super) mod rows;
pub(super) mod saga_rows;
pub(super) mod shares;
pub(super) mod taken_locks;
pub(super) mod unclosed;
pub(super) mod unfinished;
pub(super) mod work_rows;
