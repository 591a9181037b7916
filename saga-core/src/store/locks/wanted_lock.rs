//! The locks that a step transaction takes by itself.

use std::sync::Arc;

use crate::store::LockRequest;

/// A lock that a step transaction takes if no other request has it or waits for it.
#[derive(Debug, Clone)]
pub struct WantedLock {
    /// The lock. The limit of its wait means nothing: a transaction waits for it as long as for any row.
    pub request: LockRequest,
    /// Whether the claim is not granted without it. If not, it is for a step that may follow.
    pub is_required: bool,
}

/// A lock that a step transaction took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenLock {
    /// The fencing tokens of its entities, in the order of the request.
    pub tokens: Vec<u64>,
    /// Whether an earlier commit granted it. Then it lasts until [`Changes::unlocked`](crate::store::Changes::unlocked) ends it, and
    /// otherwise until the transaction ends, unless [`Changes::locked`](crate::store::Changes::locked) keeps it.
    pub is_stored: bool,
    /// Whether the transaction waited for another one that had an entity. Then such transactions of one process run one at a time for a
    /// while, since the second one would wait for the first.
    pub has_waited: bool,
}

/// A lock that a step transaction took, and that lasts longer than the transaction.
#[derive(Debug, Clone)]
pub struct KeptLock {
    /// The lock as the claim wanted it.
    pub wanted: Arc<WantedLock>,
    /// The fencing tokens that the transaction took it with.
    pub tokens: Vec<u64>,
}
