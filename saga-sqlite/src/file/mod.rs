//! The file: its lock, its connections and its tables.

pub(super) mod connection;
pub(super) mod file_identity;
pub(super) mod file_lock;
pub(super) mod schema;
