//! Cancelling a saga, and ending one whose deadline passed.

use super::control_error::{ControlError, until_applied};
use super::control_outcome::ControlOutcome;
use super::saga_control::SagaControl;
use crate::engine::admin::admin_context::{AdminContext, refused, unreadable};
use crate::engine::admin::audit::AuditEntry;
use crate::engine::commit::{called_off, changes};
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::decide::overdue;
use crate::engine::instance::{AttemptDetails, NextWork, PendingCommit};
use crate::key::Key;
use crate::machine::{Event, Refused, SagaState};
use crate::step::Rejection;
use crate::store::{Condition, HistoryKind, Miss, SagaWithSteps, Status, Store, WorkKind, WorkRef, WorkStatus};

/// Why a saga is to start compensating.
#[derive(Clone, Copy)]
enum CancelCause<'a> {
    /// An operator or an application wants it.
    Wanted(&'a AuditEntry),
    /// Its deadline passed, as this row says.
    Overdue(WorkRef),
}

impl<S: Store> SagaControl<S> {
    /// Cancels the saga: it starts compensating. No new step of it begins, running attempts finish, and its effects are
    /// undone. It can be called any number of times: a saga that compensates or has ended already is left as it is,
    /// and the returned value says so. When it returns, the cancel is durable; wait for the end of the saga with
    /// [`Runtime::attach`](crate::Runtime::attach).
    ///
    /// A step that waits for its next attempt does not wait any longer. A step in another service is waited for, and
    /// undone there. A stuck saga stays stuck until an operator has decided about its stuck steps.
    ///
    /// # Errors
    /// Those of every [action](Self); when the pivot is under way or done, since from there the saga only goes forward; and
    /// when it is a step of another service's saga.
    ///
    /// # Cancel safety
    /// When dropped, the saga was cancelled or not; the same call again says which.
    ///
    /// # Examples
    /// ```
    /// use saga_core::engine::{CompensationCause, ControlOutcome};
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::store::Status;
    /// use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation)]
    /// async fn ask_for_price(_item: String) -> Result<(), StepError> {
    ///     Err(StepError::retry("the supplier does not answer"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let offer = Saga::named("offer").input::<String>().step::<ask_for_price>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&offer).start().await?;
    ///
    /// let started = runtime.start(&offer, "offer-1", "chai".to_owned()).await?;
    /// let offer = runtime.admin().actor("ann").control("offer-1");
    /// assert_eq!(offer.cancel("the customer left").await?, ControlOutcome::Applied);
    ///
    /// let outcome = started.outcome().await?;
    /// assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }));
    /// let again = offer.cancel("the customer left").await?;
    /// assert_eq!(again, ControlOutcome::Ended(Status::Compensated));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self, reason: &str) -> Result<ControlOutcome, RuntimeError> {
        cancel(&self.ctx, &Key::from_stored(&self.key)?, self.seen, reason).await
    }
}

pub(crate) async fn cancel<S: Store>(
    ctx: &AdminContext<S>,
    key: &Key,
    seen: Option<u64>,
    reason: &str,
) -> Result<ControlOutcome, RuntimeError> {
    outside_step()?;
    let entry = ctx.audit_entry("cancel", reason);
    if let Some(problem) = entry.problem() {
        return Err(refused(key, problem));
    }
    match until_applied(|| try_cancel(ctx, key, seen, CancelCause::Wanted(&entry))).await? {
        Ok(()) => Ok(ControlOutcome::Applied),
        Err((Refused::Compensating, _)) => Ok(ControlOutcome::Already),
        Err((Refused::Ended, status)) => Ok(ControlOutcome::Ended(status)),
        Err((refusal, _)) => Err(refused(key, refusal.to_string())),
    }
}

/// Makes a saga whose deadline passed start compensating. The row of the deadline is claimed; it is deleted, also if the
/// saga passed its pivot in time.
pub(crate) async fn end_overdue<S: Store>(ctx: &AdminContext<S>, key: &Key, work: WorkRef) -> Result<(), RuntimeError> {
    let ended = until_applied(|| try_end_overdue(ctx, key, work)).await?;
    if ended.is_err() {
        // The saga passed its pivot in time. If the row is missing, another decision deleted it already.
        let _gone = ctx.record(changes::finish(work)).await?;
    }
    Ok(())
}

async fn try_end_overdue<S: Store>(ctx: &AdminContext<S>, key: &Key, work: WorkRef) -> Result<(), ControlError> {
    match try_cancel(ctx, key, None, CancelCause::Overdue(work)).await {
        Err(ControlError::Moved) => {
            // The decision that moved it may have withdrawn the row, or another process has it.
            let stored = ctx.stored(key, None).await?;
            let is_there = stored.work.iter().any(|row| row.work == work);
            if is_there { Err(ControlError::Moved) } else { Ok(()) }
        }
        result => result,
    }
}

async fn try_cancel<S: Store>(
    ctx: &AdminContext<S>,
    key: &Key,
    seen: Option<u64>,
    cause: CancelCause<'_>,
) -> Result<(), ControlError> {
    let stored = ctx.stored(key, seen).await?;
    let pending = decide_cancel(ctx, &stored, cause)?;
    match ctx.commit(key, pending).await? {
        Ok(()) => Ok(()),
        Err(Miss::Saga(_) | Miss::NoSaga(_) | Miss::Work(_)) => Err(ControlError::Moved),
        Err(miss) => Err(refused(key, format!("it was not called off: {miss:?}")).into()),
    }
}

/// The saga starts compensating. Commands that wait for another attempt fall due now, to be given up; the rows of a saga
/// that never began are deleted.
fn decide_cancel<S: Store>(
    ctx: &AdminContext<S>,
    stored: &SagaWithSteps,
    cause: CancelCause<'_>,
) -> Result<PendingCommit<S>, ControlError> {
    let row = &stored.saga;
    let mut saga = ctx.instance(stored)?;
    if row.status == Status::Stuck && saga.state.stuck.is_none() {
        let problem = "it got stuck because it could not be read; have it tried again first";
        return Err(unreadable(row, problem).into());
    }
    let within = saga.state.deadline.map(|deadline| deadline.within).unwrap_or_default();
    let (event, finished, entry) = match cause {
        CancelCause::Wanted(entry) => {
            let has_begun = has_begun(stored, &saga.state);
            (Event::CancelRequested { reason: Rejection::new(&*entry.reason), has_begun }, None, entry.entry(row.id))
        }
        CancelCause::Overdue(work) => (Event::DeadlinePassed, Some((work, Condition::Held)), overdue(row.id, within)),
    };
    let decided = ctx.decider()?.decide(&mut saga, event, &AttemptDetails::default(), NextWork::none());
    let mut pending = decided.map_err(|refused| ControlError::Refused(refused, row.status))?;
    if !pending.changes.commands.is_empty() || !pending.changes.records.is_empty() {
        // A saga that goes forward always has a step under way, or needs an operator.
        return Err(unreadable(row, "nothing of it is under way").into());
    }
    if saga.state.status().is_ended() {
        let of_steps = stored.work.iter().filter(|work| work.kind != WorkKind::Deadline);
        pending.changes.finished.extend(of_steps.map(|work| (work.work, Condition::NotLate)));
    } else {
        pending.postpone_rows(called_off(&stored.work, &saga, &ctx.settings));
    }
    pending.changes.finished.extend(finished);
    pending.changes.history.push(entry);
    Ok(pending)
}

/// Whether a worker may have begun a command of the saga since it was started, by the epochs of its rows. A pause, a
/// resume or a signal claims no row. A migration raises each epoch by one, and so does a claim that found the saga paused
/// and postponed its command.
fn has_begun(stored: &SagaWithSteps, state: &SagaState) -> bool {
    let moves = stored.history.iter().filter(|(_, entry)| entry.kind == HistoryKind::Migrated).count();
    let parked = state.paused.as_ref().map(|pause| pause.parked.as_slice()).unwrap_or_default();
    let is_untouched = |work: &WorkStatus| {
        let claims = u64::from(parked.contains(&work.work.id.0));
        let is_first = work.work.times_taken() == moves as u64 + claims;
        work.kind == WorkKind::Deadline || (is_first && work.owner.is_none() && work.attempts == 0 && !work.in_doubt)
    };
    stored.work.is_empty() || !stored.work.iter().all(is_untouched)
}
