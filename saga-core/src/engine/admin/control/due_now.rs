//! Rows that wait, as due sooner.

use std::time::Duration;

use crate::store::{Postponed, SagaWithSteps, WorkStatus};

/// The row as due after this time. What is known of its attempts stays.
pub(crate) fn due_in(row: &WorkStatus, due_in: Duration) -> Postponed {
    Postponed { work: row.work, due_in, attempts: row.attempts, in_doubt: row.in_doubt, error: None }
}

/// The rows that were postponed while the saga was paused, as due now. A row that a worker holds goes on by itself.
pub(crate) fn due_now(stored: &SagaWithSteps, parked: &[i64]) -> Vec<Postponed> {
    let waits = stored.work.iter().filter(|work| work.owner.is_none() && parked.contains(&work.work.id.0));
    waits.map(|work| due_in(work, Duration::ZERO)).collect()
}
