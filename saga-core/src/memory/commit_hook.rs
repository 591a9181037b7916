//! Hooks around the commits of the store, for tests.

use super::conn::MemoryConn;
use super::statements::changes::apply;
use crate::env::BoxFuture;
use crate::store::{Changes, StoreError};

/// The point of a call at which the hook is asked. The text is the operation's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitPoint {
    /// Before a read.
    Reading(&'static str),
    /// In a step transaction, after the claim.
    Claimed,
    /// In a step transaction, after the handler of this claim.
    Handled(usize),
    /// Nothing is committed yet. A step transaction holds its locks here.
    Committing(&'static str),
    /// All is committed, and the caller has no answer yet.
    Committed(&'static str),
}

/// What the hook does to the call.
#[derive(Debug)]
pub enum CommitFate {
    /// The call continues.
    Proceed,
    /// The caller gets this error. Before the commit nothing is kept; after it everything is.
    Fail(StoreError),
    /// The caller learns that the commit is unknown. If a step transaction was about to commit, the hook gets the
    /// [`PendingCommit`]; any other call that was about to commit is not applied.
    InDoubt,
}

/// Decides the fate of each call, for a test. The hook may wait: a caller that is dropped meanwhile is rolled back
/// before the commit, and is kept after it.
pub trait CommitHook: Send + Sync + 'static {
    /// The fate of the call at this point.
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate>;

    /// A step transaction whose outcome its caller does not know. It keeps its locks until it is committed here, or
    /// dropped, which rolls it back.
    fn in_doubt(&self, commit: PendingCommit) {
        drop(commit);
    }
}

/// A step transaction that is decided later. Dropping it rolls it back.
#[must_use]
pub struct PendingCommit {
    pub(super) conn: MemoryConn,
    pub(super) changes: Vec<Changes>,
}

impl PendingCommit {
    /// Commits it.
    pub fn commit(self) {
        let Self { conn, changes } = self;
        conn.commit(|data, now| {
            for change in changes {
                apply(data, change, now);
            }
        });
    }
}

impl std::fmt::Debug for PendingCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingCommit").finish_non_exhaustive()
    }
}
