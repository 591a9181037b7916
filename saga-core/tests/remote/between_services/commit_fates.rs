//! Counts the commits of a store, and lets some of them fail.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, PendingCommit};
use saga_core::store::{StoreError, StoreErrorKind};

/// What becomes of a step transaction that is about to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Commits,
    Fails,
    /// The answer is lost, and it was committed.
    IsLost,
    /// The answer is lost, and nothing was committed.
    IsLostAndRolledBack,
}

/// Counts the commits of a store by what was asked of it, and decides about its next step transactions.
#[derive(Debug, Default, Clone)]
pub(crate) struct Commits {
    counts: Arc<Mutex<BTreeMap<&'static str, u32>>>,
    fates: Arc<Mutex<VecDeque<Fate>>>,
    in_doubt: Arc<Mutex<Option<Fate>>>,
}

impl Commits {
    pub(crate) fn of(&self, operation: &str) -> u32 {
        self.counts.lock().unwrap().get(operation).copied().unwrap_or(0)
    }

    /// How often decisions were recorded by themselves, and how many step transactions were committed.
    pub(crate) fn records_and_steps(&self) -> (u32, u32) {
        (self.of("record"), self.of("transact"))
    }

    /// The fates of the next step transactions.
    pub(crate) fn next(&self, fates: impl IntoIterator<Item = Fate>) {
        self.fates.lock().unwrap().extend(fates);
    }

    fn fate(&self) -> CommitFate {
        let fate = self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Commits);
        match fate {
            Fate::Commits => CommitFate::Proceed,
            Fate::Fails => {
                CommitFate::Fail(StoreError::new(StoreErrorKind::Unavailable, "transact", "the cable is cut"))
            }
            Fate::IsLost | Fate::IsLostAndRolledBack => {
                *self.in_doubt.lock().unwrap() = Some(fate);
                CommitFate::InDoubt
            }
        }
    }
}

impl CommitHook for Commits {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        if let CommitPoint::Committed(operation) = point {
            *self.counts.lock().unwrap().entry(operation).or_default() += 1;
        }
        let is_step = matches!(point, CommitPoint::Committing("transact"));
        Box::pin(std::future::ready(if is_step { self.fate() } else { CommitFate::Proceed }))
    }

    fn in_doubt(&self, commit: PendingCommit) {
        if self.in_doubt.lock().unwrap().take() == Some(Fate::IsLost) {
            commit.commit();
        }
    }
}
