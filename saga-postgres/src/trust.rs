//! Which steps were clean lately, so that their handlers run without savepoints.
//!
//! A savepoint is a message of its own for each handler, about as dear as the handler's own statement. A step whose
//! handlers kept all they wrote many times in a row runs without; its first failure rolls the batch back, which runs
//! again with them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use saga_core::store::Claim;

/// Runs in a row without anything to take back until a step is trusted. A failure costs the batch that is rolled back
/// with it, so a step that fails more often than once in about so many runs must keep its savepoints.
pub(crate) const TRUSTED_AFTER: u32 = 500;

#[derive(Debug)]
pub(crate) struct Trust {
    trusted_after: u32,
    clean_runs: Mutex<HashMap<Box<str>, u32>>,
}

impl Trust {
    pub(crate) fn new(trusted_after: u32) -> Self {
        Self { trusted_after, clean_runs: Mutex::default() }
    }

    pub(crate) fn is_in_all(&self, claims: &[Claim]) -> bool {
        let clean_runs = self.lock();
        let is_trusted =
            |claim: &Claim| clean_runs.get(&*claim.step.function()).is_some_and(|runs| *runs >= self.trusted_after);
        claims.iter().all(is_trusted)
    }

    /// What became of a handler that committed: whether its writes were kept.
    pub(crate) fn note(&self, claim: &Claim, is_clean: bool) {
        let (mut clean_runs, step) = (self.lock(), &*claim.step.function());
        match clean_runs.get_mut(step) {
            _ if !is_clean => _ = clean_runs.remove(step),
            Some(runs) => *runs = runs.saturating_add(1),
            None => _ = clean_runs.insert(step.into(), 1),
        }
    }

    /// Something was wrong in a transaction of these.
    pub(crate) fn lose(&self, claims: &[Claim]) {
        let mut clean_runs = self.lock();
        for claim in claims {
            clean_runs.remove(&*claim.step.function());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, u32>> {
        self.clean_runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
