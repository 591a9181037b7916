//! Rows that were postponed while a saga was paused.

use std::time::Duration;

use crate::store::{Postponed, SagaWithSteps};

/// The rows that were postponed while the saga was paused, as due now. A row that a worker holds goes on by itself.
pub(crate) fn due_now(stored: &SagaWithSteps, parked: &[i64]) -> Vec<Postponed> {
    let waits = stored.work.iter().filter(|work| work.owner.is_none() && parked.contains(&work.work.id.0));
    waits
        .map(|work| Postponed {
            work: work.work,
            due_in: Duration::ZERO,
            attempts: work.attempts,
            in_doubt: work.in_doubt,
            error: None,
        })
        .collect()
}
