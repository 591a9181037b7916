use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryStore};
use saga_core::store::{StoreError, StoreErrorKind};

/// Where in a call of the store the fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before anything is done: the call certainly did not happen.
    Before,
    /// All is committed, and the caller does not learn it.
    Behind,
}

/// Faults of one handle on a memory store. A clone is the same faults.
#[derive(Clone)]
pub struct Faults {
    plan: Arc<Mutex<Plan>>,
}

struct Plan {
    when: When,
    /// How often each operation fails from now on.
    times: u32,
    only: Option<&'static str>,
    struck: BTreeMap<&'static str, u32>,
    ever: BTreeSet<&'static str>,
}

impl Faults {
    /// A handle on the same data, and its faults: none so far.
    pub fn on(store: &MemoryStore) -> (MemoryStore, Self) {
        let plan = Plan { when: When::Before, times: 0, only: None, struck: BTreeMap::new(), ever: BTreeSet::new() };
        let faults = Self { plan: Arc::new(Mutex::new(plan)) };
        (store.clone().with_commit_hook(Arc::new(faults.clone())), faults)
    }

    /// From now on every operation fails so often, and then works.
    pub fn each_fails(&self, times: u32, when: When) {
        self.begin(times, when, None);
    }

    /// From now on this operation fails so often, and then works.
    pub fn one_fails(&self, operation: &'static str, times: u32, when: When) {
        self.begin(times, when, Some(operation));
    }

    /// The operations that have failed.
    pub fn struck(&self) -> BTreeSet<&'static str> {
        self.lock().ever.clone()
    }

    fn begin(&self, times: u32, when: When, only: Option<&'static str>) {
        let mut plan = self.lock();
        plan.struck.clear();
        (plan.when, plan.times, plan.only) = (when, times, only);
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommitHook for Faults {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        let mut plan = self.lock();
        let (CommitPoint::Reading(operation) | CommitPoint::Committing(operation) | CommitPoint::Committed(operation)) =
            point
        else {
            return proceed();
        };
        let is_behind = matches!(point, CommitPoint::Committed(_));
        let (when, times, is_meant) = (plan.when, plan.times, plan.only.is_none_or(|only| only == operation));
        let struck = plan.struck.entry(operation).or_default();
        if is_behind != (when == When::Behind) || !is_meant || *struck >= times {
            return proceed();
        }
        *struck += 1;
        plan.ever.insert(operation);
        let kind = if when == When::Before { StoreErrorKind::Unavailable } else { StoreErrorKind::UnknownCommit };
        Box::pin(async move { CommitFate::Fail(StoreError::new(kind, operation, "as planned")) })
    }
}

fn proceed() -> BoxFuture<'static, CommitFate> {
    Box::pin(async { CommitFate::Proceed })
}
