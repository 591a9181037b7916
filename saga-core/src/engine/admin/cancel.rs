//! Cancels sagas, for an operator or because a deadline passed.

use std::time::Duration;

use super::audit::AuditEntry;
use super::control_error::ControlError;
use super::saga_admin::{SagaAdmin, refused, unreadable};
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::decide::overdue;
use crate::engine::outcome::{Outcome, outcome_of};
use crate::key::{Key, StepId};
use crate::machine::{self, Decision, Effect, Event, Refused, SagaState};
use crate::saga::Definition;
use crate::step::Rejection;
use crate::store::{
    Advance, Changes, Condition, HistoryKind, Miss, Postponed, SagaWithSteps, Status, Store, WorkKind, WorkRef,
    WorkStatus,
};

/// The outcome of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// This call made the saga start compensating.
    Begun,
    /// The saga was compensating already. Nothing was changed.
    UnderWay,
    /// The saga had ended already. Nothing was changed.
    Ended(Status),
}

/// Why a saga starts compensating.
#[derive(Clone, Copy)]
pub(crate) enum CancelCause<'a> {
    /// An operator cancelled it.
    Act(&'a AuditEntry),
    /// Its deadline passed. The row is that of the deadline.
    Overdue(WorkRef),
}

impl<S: Store> SagaAdmin<S> {
    /// Cancels a saga, as [`Runtime::cancel`](super::Runtime::cancel) does.
    ///
    /// # Errors
    /// Those of [`Runtime::cancel`](super::Runtime::cancel).
    ///
    /// # Cancel safety
    /// When dropped, the saga was cancelled or not; the same call again says which.
    pub async fn cancel(&self, key: impl AsRef<str>, reason: &str) -> Result<CancelOutcome, RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(key.as_ref())?;
        loop {
            match self.try_to_cancel(&key, None, reason).await {
                Ok(()) => return Ok(CancelOutcome::Begun),
                Err(ControlError::Moved) => {}
                Err(ControlError::Refused(Refused::TurnedRound, _)) => return Ok(CancelOutcome::UnderWay),
                Err(ControlError::Refused(Refused::Ended, status)) => return Ok(CancelOutcome::Ended(status)),
                Err(ControlError::Refused(refusal, _)) => return Err(refused(&key, refusal.to_string())),
                Err(ControlError::Error(error)) => return Err(error),
            }
        }
    }

    /// Cancels a saga that is still at the revision that the operator saw.
    pub(crate) async fn cancel_seen(&self, key: &Key, revision: u64, reason: &str) -> Result<(), RuntimeError> {
        outside_step()?;
        loop {
            match self.try_to_cancel(key, Some(revision), reason).await {
                Ok(()) => return Ok(()),
                Err(ControlError::Moved) => {}
                Err(ControlError::Refused(refusal, _)) => return Err(refused(key, refusal.to_string())),
                Err(ControlError::Error(error)) => return Err(error),
            }
        }
    }

    async fn try_to_cancel(&self, key: &Key, seen: Option<u64>, reason: &str) -> Result<(), ControlError> {
        let act = self.act("cancel", reason);
        if let Some(problem) = act.problem() {
            return Err(refused(key, problem).into());
        }
        self.try_to_compensate(key, seen, CancelCause::Act(&act)).await
    }

    /// Makes the saga start compensating, if it has not done so already.
    pub(crate) async fn try_to_compensate(
        &self,
        key: &Key,
        seen: Option<u64>,
        cause: CancelCause<'_>,
    ) -> Result<(), ControlError> {
        let stored = self.stored(key, seen).await?;
        let (changes, outcome) = self.cancel_changes(&stored, cause)?;
        let is_hurried = !changes.postponed.is_empty();
        let status = changes.saga.as_ref().map_or(stored.saga.status, |advance| advance.status);
        match self.record(changes).await? {
            Ok(()) => {
                if is_hurried {
                    self.desk.wake_workers();
                }
                self.desk.tell(stored.saga.id, outcome);
                if let Ok(definition) = self.definition_of(&stored.saga) {
                    self.notify_parent(key, definition, status).await;
                }
                Ok(())
            }
            Err(Miss::Saga(_) | Miss::Work(_)) => Err(ControlError::Moved),
            Err(miss) => Err(refused(key, format!("it was not called off: {miss:?}")).into()),
        }
    }

    /// The changes that make the saga start compensating. A row that waits for its next attempt falls due now, so
    /// that its worker sees the cancel. A row that was never claimed is deleted.
    fn cancel_changes(
        &self,
        stored: &SagaWithSteps,
        cause: CancelCause<'_>,
    ) -> Result<(Changes, Option<Outcome>), ControlError> {
        let saga = &stored.saga;
        let (definition, mut state) = self.read(saga)?;
        let unreadable = |problem: &str| unreadable(saga, problem);
        if saga.status == Status::Stuck && state.stuck.is_none() {
            return Err(unreadable("it got stuck because it could not be read; have it tried again first").into());
        }
        let within = state.deadline.map(|deadline| deadline.within).unwrap_or_default();
        let called_off = match cause {
            CancelCause::Act(act) => {
                let has_begun = has_begun(stored, &state);
                Event::CalledOff { reason: Rejection::new(&*act.reason), has_begun }
            }
            CancelCause::Overdue(_) => Event::DeadlinePassed,
        };
        let decision = machine::apply(&definition.shape, &mut state, called_off);
        let mut decision = decision.map_err(|refused| ControlError::Refused(refused, saga.status))?;
        let withdrawn = std::mem::take(&mut decision.withdrawn);
        if decision != Decision::default() {
            // Something of a saga that goes forward is always under way, or needs a person.
            return Err(unreadable("nothing of it is under way").into());
        }
        let (expected, status) = (saga.version, state.status());
        let is_over = status.is_ended();
        let of_step = |work: &&WorkStatus| work.kind != WorkKind::Deadline;
        let whole = |work: &WorkStatus| (work.work, Condition::NotLate);
        let steps = stored.work.iter().filter(of_step).map(whole);
        let (row, line) = match cause {
            CancelCause::Act(act) => (None, act.entry(saga.id)),
            CancelCause::Overdue(row) => (Some((row, Condition::Held)), overdue(saga.id, within)),
        };
        let changes = Changes {
            saga: Some(Advance { id: saga.id, expected, status, state: state.encode() }),
            finished: steps.filter(|_| is_over).chain(row).collect(),
            withdrawn: withdrawn.iter().map(|timer| timer.row(saga.id)).collect(),
            postponed: if is_over { Vec::new() } else { hurried(stored, definition, &state) },
            history: vec![line],
            ..Changes::default()
        };
        Ok((changes, outcome_of(&definition.shape, &state)))
    }
}

/// Whether a worker may have begun a command of the saga since it was started. The epochs of the rows tell: a pause,
/// a resume and a signal do not raise them. A migration raises each by one, and so does a claim that found the saga
/// paused and postponed its command.
fn has_begun(stored: &SagaWithSteps, state: &SagaState) -> bool {
    let moves = stored.history.iter().filter(|(_, entry)| entry.kind == HistoryKind::Migrated).count();
    let parked = state.paused.as_ref().map(|pause| pause.parked.as_slice()).unwrap_or_default();
    let is_untouched = |work: &WorkStatus| {
        let claims = u64::from(parked.contains(&work.work.id.0));
        let is_first = work.work.epoch == 1 + moves as u64 + claims;
        work.kind == WorkKind::Deadline || (is_first && work.owner.is_none() && work.attempts == 0 && !work.in_doubt)
    };
    stored.work.is_empty() || !stored.work.iter().all(is_untouched)
}

/// Makes unclaimed commands due that might otherwise wait for long. A command that was sent to another service keeps
/// waiting for its reply.
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
    /// Cancels a saga whose deadline passed, as the claimed row says. The row is deleted even if the saga has
    /// completed in time.
    pub(crate) async fn end_overdue(&self, key: &Key, work: WorkRef) -> Result<(), RuntimeError> {
        loop {
            match self.try_to_compensate(key, None, CancelCause::Overdue(work)).await {
                Ok(()) => return Ok(()),
                Err(ControlError::Moved) => {
                    // Another process may have changed the saga and deleted the row, or claimed the row.
                    let stored = self.stored(key, None).await?;
                    if !stored.work.iter().any(|row| row.work == work) {
                        return Ok(());
                    }
                }
                Err(ControlError::Refused(..)) => {
                    let changes = Changes { finished: vec![(work, Condition::Held)], ..Changes::default() };
                    // If the row is not there any more, it has been deleted already.
                    let _gone = self.record(changes).await?;
                    return Ok(());
                }
                Err(ControlError::Error(error)) => return Err(error),
            }
        }
    }
}
