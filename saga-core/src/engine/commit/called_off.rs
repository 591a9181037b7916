//! Commands that a saga does not want any more, as due now: they are given up where they are claimed.

use std::time::Duration;

use super::changes;
use crate::engine::context::Settings;
use crate::engine::instance::SagaInstance;
use crate::engine::store_calls::{LOCK_RETRIES_MAX, retry_locked};
use crate::env::Environment;
use crate::machine::{Effect, settles_next};
use crate::saga::Definition;
use crate::store::{Changes, Postponed, Store, StoreError, WorkKind, WorkStatus};

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

/// The commands of a saga that compensates, and that no worker holds, as due now; they may be due much later. A command that
/// was sent to another service waits for the reply, and one whose call may still land waits for that.
pub(crate) fn called_off<'a, S: Store>(
    work: impl IntoIterator<Item = &'a WorkStatus>,
    saga: &SagaInstance<S>,
    settings: &Settings,
) -> Vec<Postponed> {
    let SagaInstance { definition, state, .. } = saga;
    let is_remote = |row: &WorkStatus| {
        let base = definition.shape.position(row.step.step());
        let step = base.and_then(|base| state.index_of(base, row.step.item()));
        step.is_none_or(|step| matches!(definition.shape.effect(state, step), Effect::Remote { .. }))
    };
    let waits = work.into_iter().filter(|row| row.owner.is_none() && row.kind == WorkKind::Do);
    let waits = waits.filter(|row| !is_remote(row) && !is_settling(row, definition, settings));
    waits.map(|row| due_in(row, Duration::ZERO)).collect()
}

/// Makes the rows due; whether there were any. A worker that has claimed one meanwhile reads the saga itself.
pub(super) async fn make_due<S: Store>(
    store: &S,
    env: &dyn Environment,
    rows: Vec<Postponed>,
) -> Result<bool, StoreError> {
    if rows.is_empty() {
        return Ok(false);
    }
    let each: Vec<Changes> = rows.into_iter().map(changes::postpone).collect();
    // One locked row fails them all. Each is guarded by its epoch, so they may be written again.
    let applied = retry_locked(env, LOCK_RETRIES_MAX, || store.record(each.clone())).await?;
    Ok(applied.iter().any(Result::is_ok))
}
