//! The sagas that the archive refused, or that are not finished: others are archived first.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::store::{ExpiredSaga, SagaId};

/// How many sagas are remembered at most. Each batch reads so many more from the store.
const MAX: usize = 10_000;

/// The sagas that the archive refused even alone, or with sub-sagas that have not ended, each with the time until which others are
/// archived first.
#[derive(Debug, Default)]
pub(super) struct RefusedSagas(BTreeMap<SagaId, Duration>);

impl RefusedSagas {
    /// Others come first until then. Answers whether the saga is new here.
    pub(super) fn add(&mut self, saga: SagaId, until: Duration) -> bool {
        let is_kept = self.0.len() < MAX || self.0.contains_key(&saga);
        is_kept && self.0.insert(saga, until).is_none()
    }

    /// How many sagas come last now.
    pub(super) fn count(&mut self, now: Duration) -> usize {
        self.0.retain(|_, until| *until > now);
        self.0.len()
    }

    /// The `size` sagas to archive next. Those that were refused come last, in the order in which they were refused: only while
    /// nothing else is due.
    pub(super) fn next(&self, mut expired: Vec<ExpiredSaga>, size: usize) -> Vec<ExpiredSaga> {
        if expired.iter().any(|saga| !self.0.contains_key(&saga.id)) {
            expired.retain(|saga| !self.0.contains_key(&saga.id));
        } else {
            expired.sort_by_key(|saga| self.0.get(&saga.id));
        }
        expired.truncate(size);
        expired
    }
}
