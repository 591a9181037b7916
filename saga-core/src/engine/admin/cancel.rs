//! Calling sagas off from outside.

use std::time::Duration;

use super::audit::AuditEntry;
use super::control_error::{ControlError, until_applied};
use super::saga_admin::{SagaAdmin, refused, unreadable};
use crate::engine::commit::changes;
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::decide::overdue;
use crate::engine::instance::{AttemptDetails, NextWork, PendingCommit};
use crate::key::{Key, StepId};
use crate::machine::{Effect, Event, Refused, SagaState};
use crate::saga::Definition;
use crate::step::Rejection;
use crate::store::{
    Condition, HistoryKind, Miss, Postponed, SagaWithSteps, Status, Store, WorkKind, WorkRef, WorkStatus,
};

/// What became of the wish to cancel a saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The saga turned round by this call.
    Begun,
    /// It compensates already, for whatever reason, and nothing was changed.
    UnderWay,
    /// It has ended already, and nothing was changed.
    Ended(Status),
}

/// Why a saga is to turn round.
#[derive(Clone, Copy)]
pub(crate) enum CancelCause<'a> {
    /// Somebody wants it.
    Act(&'a AuditEntry),
    /// Its deadline passed, which this row says.
    Overdue(WorkRef),
}

impl<S: Store> SagaAdmin<S> {
    /// Cancels a saga, as [`Runtime::cancel`](crate::Runtime::cancel) does.
    ///
    /// # Errors
    /// Those of [`Runtime::cancel`](crate::Runtime::cancel).
    ///
    /// # Cancel safety
    /// When dropped, the saga was cancelled or not; the same call again says which.
    pub async fn cancel(&self, key: impl AsRef<str>, reason: &str) -> Result<CancelOutcome, RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(key.as_ref())?;
        match until_applied(|| self.try_to_cancel(&key, None, reason)).await? {
            Ok(()) => Ok(CancelOutcome::Begun),
            Err((Refused::Compensating, _)) => Ok(CancelOutcome::UnderWay),
            Err((Refused::Ended, status)) => Ok(CancelOutcome::Ended(status)),
            Err((refusal, _)) => Err(refused(&key, refusal.to_string())),
        }
    }

    /// Cancels a saga that still stands as somebody saw it.
    pub(crate) async fn cancel_seen(&self, key: &Key, revision: u64, reason: &str) -> Result<(), RuntimeError> {
        outside_step()?;
        let cancelled = until_applied(|| self.try_to_cancel(key, Some(revision), reason)).await?;
        cancelled.map_err(|(refusal, _)| refused(key, refusal.to_string()))
    }

    async fn try_to_cancel(&self, key: &Key, seen: Option<u64>, reason: &str) -> Result<(), ControlError> {
        let act = self.act("cancel", reason);
        if let Some(problem) = act.problem() {
            return Err(refused(key, problem).into());
        }
        self.try_to_compensate(key, seen, CancelCause::Act(&act)).await
    }

    /// The saga turns round, if that is still to be.
    pub(crate) async fn try_to_compensate(
        &self,
        key: &Key,
        seen: Option<u64>,
        cause: CancelCause<'_>,
    ) -> Result<(), ControlError> {
        let stored = self.stored(key, seen).await?;
        let pending = self.decide_cancel(&stored, cause)?;
        match self.commit(key, pending).await? {
            Ok(()) => Ok(()),
            Err(Miss::Saga(_) | Miss::Work(_)) => Err(ControlError::Moved),
            Err(miss) => Err(refused(key, format!("it was not called off: {miss:?}")).into()),
        }
    }

    /// The saga starts compensating. Commands that wait for another attempt fall due now, to be given up; the rows of a
    /// saga that never began go.
    fn decide_cancel(&self, stored: &SagaWithSteps, cause: CancelCause<'_>) -> Result<PendingCommit<S>, ControlError> {
        let row = &stored.saga;
        let mut saga = self.instance(stored)?;
        if row.status == Status::Stuck && saga.state.stuck.is_none() {
            let problem = "it got stuck because it could not be read; have it tried again first";
            return Err(unreadable(row, problem).into());
        }
        let within = saga.state.deadline.map(|deadline| deadline.within).unwrap_or_default();
        let (event, finished, entry) = match cause {
            CancelCause::Act(act) => {
                let has_begun = has_begun(stored, &saga.state);
                (Event::CancelRequested { reason: Rejection::new(&*act.reason), has_begun }, None, act.entry(row.id))
            }
            CancelCause::Overdue(work) => {
                (Event::DeadlinePassed, Some((work, Condition::Held)), overdue(row.id, within))
            }
        };
        let decided = self.decider()?.decide(&mut saga, event, &AttemptDetails::default(), NextWork::none());
        let mut pending = decided.map_err(|refused| ControlError::Refused(refused, row.status))?;
        if !pending.changes.commands.is_empty() || !pending.changes.records.is_empty() {
            // Something of a saga that goes forward is always under way, or needs an operator.
            return Err(unreadable(row, "nothing of it is under way").into());
        }
        if saga.state.status().is_ended() {
            let of_steps = stored.work.iter().filter(|work| work.kind != WorkKind::Deadline);
            pending.changes.finished.extend(of_steps.map(|work| (work.work, Condition::NotLate)));
        } else {
            pending.postpone_rows(hurried(stored, &saga.definition, &saga.state));
        }
        pending.changes.finished.extend(finished);
        pending.changes.history.push(entry);
        Ok(pending)
    }
}

/// Whether a command of the saga may have begun since it was started. The epochs of its rows tell: pausing and resuming a saga
/// and sending it a signal take no row. A migration takes each row once, and so does a claim that found the saga paused and
/// parked its command.
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

/// Commands that nobody has, and that may be due much later. What was sent to another service waits for its answer.
fn hurried<S: Store>(stored: &SagaWithSteps, definition: &Definition<S>, state: &SagaState) -> Vec<Postponed> {
    let is_remote = |id: &StepId| {
        let base = definition.shape.position(id.step());
        let step = base.and_then(|base| state.index_of(base, id.item()));
        step.is_none_or(|step| matches!(definition.shape.effect(state, step), Effect::Remote { .. }))
    };
    let waits = stored.work.iter().filter(|work| work.owner.is_none() && work.kind == WorkKind::Do);
    waits
        .filter(|work| !is_remote(&work.step))
        .map(|work| Postponed {
            work: work.work,
            due_in: Duration::ZERO,
            attempts: work.attempts,
            in_doubt: work.in_doubt,
            error: None,
        })
        .collect()
}

impl<S: Store> SagaAdmin<S> {
    /// Calls off a saga whose deadline passed, as the claimed row says. The row goes, also where the saga is done in time.
    pub(crate) async fn end_overdue(&self, key: &Key, work: WorkRef) -> Result<(), RuntimeError> {
        let ended = until_applied(|| self.try_to_end_overdue(key, work)).await?;
        if ended.is_err() {
            // The saga came past its pivot in time. Where the row is not there any more, it is gone already.
            let _gone = self.record(changes::finish(work)).await?;
        }
        Ok(())
    }

    async fn try_to_end_overdue(&self, key: &Key, work: WorkRef) -> Result<(), ControlError> {
        match self.try_to_compensate(key, None, CancelCause::Overdue(work)).await {
            Err(ControlError::Moved) => {
                // The decision that moved it may have withdrawn the row, or another process has it.
                let stored = self.stored(key, None).await?;
                let is_there = stored.work.iter().any(|row| row.work == work);
                if is_there { Err(ControlError::Moved) } else { Ok(()) }
            }
            result => result,
        }
    }
}
