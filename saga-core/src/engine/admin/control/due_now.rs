//! Rows that wait, as due sooner.

use std::time::Duration;

use crate::engine::context::Settings;
use crate::machine::settles_next;
use crate::saga::Definition;
use crate::store::{Postponed, SagaWithSteps, Store, WorkKind, WorkStatus};

/// The row as due after this time. What is known of its attempts stays.
pub(crate) fn due_in(row: &WorkStatus, due_in: Duration) -> Postponed {
    Postponed { work: row.work, due_in, attempts: row.attempts, in_doubt: row.in_doubt, error: None }
}

/// Whether the row waits until a call has landed that had no answer, or never will. Only after that can its resolution say that the
/// step certainly did not happen, so it is not due sooner.
pub(crate) fn is_settling<S: Store>(row: &WorkStatus, definition: &Definition<S>, settings: &Settings) -> bool {
    let step = definition.shape.position(row.step.step()).map(|base| &definition.steps[base]);
    let resolved = step.and_then(|step| Some((step, step.resolve.as_ref()?)));
    let Some((step, resolve)) = resolved.filter(|_| row.kind == WorkKind::Do && row.in_doubt) else { return false };
    let of_step = step.options.retry_policy(&settings.retry);
    settles_next(&of_step, &resolve.options.retry_policy(&settings.retry), row.attempts)
}

/// The rows that were postponed while the saga was paused, as due now. A row that a worker holds goes on by itself.
pub(crate) fn due_now(stored: &SagaWithSteps, parked: &[i64]) -> Vec<Postponed> {
    let waits = stored.work.iter().filter(|work| work.owner.is_none() && parked.contains(&work.work.id.0));
    waits.map(|work| due_in(work, Duration::ZERO)).collect()
}
