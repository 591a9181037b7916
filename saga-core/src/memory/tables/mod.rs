//! What the store keeps: a table for each kind of row, the locks that open transactions hold, and the dates of ended sagas.

pub(super) mod aging;
pub(super) mod data;
pub(super) mod dead_letter_table;
pub(super) mod expiry;
pub(super) mod hashing;
pub(super) mod live_members;
pub(super) mod lock_table;
pub(super) mod locks;
pub(super) mod outbox_table;
pub(super) mod request_table;
pub(super) mod table;
pub(super) mod work_row;
