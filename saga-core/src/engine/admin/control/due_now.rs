//! Rows that waited while their saga was paused, as due now.

use std::time::Duration;

use crate::engine::commit::due_in;
use crate::store::{Postponed, SagaWithSteps};

/// The rows that were postponed while the saga was paused, as due now. A row that a worker holds goes on by itself.
pub(crate) fn due_now(stored: &SagaWithSteps, parked: &[i64]) -> Vec<Postponed> {
    let waits = stored.work.iter().filter(|work| work.owner.is_none() && parked.contains(&work.work.id.0));
    waits.map(|work| due_in(work, Duration::ZERO)).collect()
}
