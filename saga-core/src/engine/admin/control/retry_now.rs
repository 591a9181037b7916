//! Trying at once what waits for its next attempt.

use std::time::Duration;

use super::control_error::{ControlError, until_applied};
use super::saga_control::SagaControl;
use crate::engine::admin::admin_context::{AdminContext, refused};
use crate::engine::admin::audit::AuditEntry;
use crate::engine::commit::{changes, due_in, is_settling};
use crate::engine::context::{RuntimeError, outside_step};
use crate::key::Key;
use crate::store::{Miss, Postponed, SagaWithSteps, Status, Store, WorkStatus};

impl<S: Store> SagaControl<S> {
    /// Makes the next attempts of the saga due now, of steps and of undos; a step in another service is asked for again.
    /// Returns how many attempts that are. If there are none, nothing is changed.
    ///
    /// A step that is stuck has no next attempt: use [`SagaControl::retry`].
    ///
    /// # Errors
    /// When the saga is stuck or paused.
    ///
    /// # Cancel safety
    /// When dropped, the attempts were made due or not; the same call again makes them due.
    pub async fn retry_now(&self, reason: &str) -> Result<usize, RuntimeError> {
        retry_now(&self.ctx, &Key::from_stored(&self.key)?, self.seen, reason).await
    }
}

pub(in crate::engine::admin) async fn retry_now<S: Store>(
    ctx: &AdminContext<S>,
    key: &Key,
    seen: Option<u64>,
    reason: &str,
) -> Result<usize, RuntimeError> {
    outside_step()?;
    let entry = ctx.audit_entry("retry now", reason);
    if let Some(problem) = entry.problem() {
        return Err(refused(key, problem));
    }
    let applied = until_applied(|| try_retry_now(ctx, key, seen, &entry)).await?;
    applied.map_err(|(refusal, _)| refused(key, refusal.to_string()))
}

async fn try_retry_now<S: Store>(
    ctx: &AdminContext<S>,
    key: &Key,
    seen: Option<u64>,
    entry: &AuditEntry,
) -> Result<usize, ControlError> {
    let stored = ctx.stored(key, seen).await?;
    let problem = match stored.saga.status {
        Status::Stuck => "it is stuck, and waits for no attempt; have what is stuck tried again",
        Status::Paused => "it is paused; resume it, and what fell due meanwhile is tried at once",
        _ => "",
    };
    if !problem.is_empty() {
        return Err(refused(key, problem).into());
    }
    let postponed = waiting(ctx, &stored);
    let count = postponed.len();
    if count == 0 {
        return Ok(0);
    }
    match ctx.record(changes::postpone_all(postponed, entry.entry(stored.saga.id))).await? {
        Ok(()) => {
            ctx.tenant_store.wake_workers();
            Ok(count)
        }
        // Another process has just begun the attempt, or the step is done.
        Err(Miss::Work(_)) => Err(ControlError::Moved),
        Err(miss) => Err(refused(key, format!("it was not hurried: {miss:?}")).into()),
    }
}

/// The rows that failed and that no worker holds, as due now. A row that begins later, or that waits until a late call
/// must have landed, keeps its time.
fn waiting<S: Store>(ctx: &AdminContext<S>, stored: &SagaWithSteps) -> Vec<Postponed> {
    // Of a saga whose definition is not known here, what is in doubt keeps its time.
    let definition = ctx.definition_of(&stored.saga).ok();
    let settles =
        |work: &WorkStatus| definition.map_or(work.in_doubt, |definition| is_settling(work, definition, &ctx.settings));
    let waits = |work: &&WorkStatus| work.owner.is_none() && work.attempts > 0 && !settles(work);
    stored.work.iter().filter(waits).map(|work| due_in(work, Duration::ZERO)).collect()
}
