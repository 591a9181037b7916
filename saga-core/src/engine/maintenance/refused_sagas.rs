//! The sagas that the archive refused, which are left out for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::store::{ExpiredSaga, SagaId};

/// How many sagas are left out at most. Where more are refused, the archive itself fails.
const MAX: usize = 1_000;

/// The sagas that the archive refused even alone, each with the time from which on it is asked again. Others are archived meanwhile.
#[derive(Debug, Default)]
pub(super) struct RefusedSagas(BTreeMap<SagaId, Duration>);

impl RefusedSagas {
    /// The archive is not asked for this saga before `until`.
    pub(super) fn add(&mut self, saga: SagaId, until: Duration) {
        if self.0.len() < MAX {
            self.0.insert(saga, until);
        }
    }

    /// How many sagas are left out now.
    pub(super) fn count(&mut self, now: Duration) -> usize {
        self.0.retain(|_, until| *until > now);
        self.0.len()
    }

    /// The first `size` of these sagas that are not left out.
    pub(super) fn without(&self, expired: Vec<ExpiredSaga>, size: usize) -> Vec<ExpiredSaga> {
        expired.into_iter().filter(|saga| !self.0.contains_key(&saga.id)).take(size).collect()
    }
}
