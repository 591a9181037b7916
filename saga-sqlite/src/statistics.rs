use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::writer::authorizer::Authorizer;

/// Counters of the writer since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Commits that wrote something, as SQLite counts them.
    pub commits: u64,
    /// Groups that committed, also without writes.
    pub groups: u64,
    /// Calls in those groups.
    pub jobs: u64,
    /// Savepoints that were set.
    pub savepoints: u64,
    /// Transactions that were rolled back whole.
    pub rollbacks: u64,
}

#[derive(Debug)]
pub(crate) struct Counters {
    authorizer: Arc<Authorizer>,
    groups: AtomicU64,
    jobs: AtomicU64,
    savepoints: AtomicU64,
    rollbacks: AtomicU64,
}

impl Counters {
    pub(crate) fn new(authorizer: Arc<Authorizer>) -> Self {
        let zero = AtomicU64::default;
        Self { authorizer, groups: zero(), jobs: zero(), savepoints: zero(), rollbacks: zero() }
    }

    pub(crate) fn group(&self, jobs: usize) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.jobs.fetch_add(jobs as u64, Ordering::Relaxed);
    }

    pub(crate) fn savepoint(&self) {
        self.savepoints.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn rollback(&self) {
        self.rollbacks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Statistics {
        Statistics {
            commits: self.authorizer.commits(),
            groups: self.groups.load(Ordering::Relaxed),
            jobs: self.jobs.load(Ordering::Relaxed),
            savepoints: self.savepoints.load(Ordering::Relaxed),
            rollbacks: self.rollbacks.load(Ordering::Relaxed),
        }
    }
}
