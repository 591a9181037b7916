//! How long an ended saga is kept.

use std::time::Duration;

/// How long an ended saga is kept, counted from its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expiry {
    /// The time from the end until only a tombstone is kept.
    pub tombstone_in: Duration,
    /// The time from the end until the tombstone is deleted; at least `tombstone_in`.
    pub delete_in: Duration,
    /// The services that did steps of the saga. They are told before its records are deleted.
    pub hosts: Vec<String>,
}

impl Expiry {
    /// A saga that is deleted this long after its end, without a tombstone before.
    pub fn deleted_in(delete_in: Duration) -> Self {
        Self { tombstone_in: delete_in, delete_in, hosts: Vec::new() }
    }
}
