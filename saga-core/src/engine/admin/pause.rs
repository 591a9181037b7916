//! Holding sagas up, and letting them go on.

use std::time::Duration;

use super::audit::AuditEntry;
use super::control_error::{ControlError, until_applied};
use super::due_now::due_now;
use super::saga_admin::{SagaAdmin, refused, unreadable};
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::instance::AttemptDetails;
use crate::key::Key;
use crate::machine::{Event, Refused};
use crate::store::{Miss, Status, Store};

/// What became of the wish to pause a saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseOutcome {
    /// The saga is paused by this call.
    Paused,
    /// It was paused already, and nothing was changed.
    Already,
    /// It has ended, and nothing was changed.
    Ended(Status),
}

/// What became of the wish to resume a saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeOutcome {
    /// The saga goes on by this call.
    Resumed,
    /// It is not paused, and nothing was changed: this is how it stands.
    NotPaused(Status),
}

/// What is wanted.
#[derive(Clone, Copy)]
enum PauseAction {
    Pause,
    Resume,
}

impl<S: Store> SagaAdmin<S> {
    /// Pauses a saga, as [`Runtime::pause`](crate::Runtime::pause) does.
    ///
    /// # Errors
    /// Those of [`Runtime::pause`](crate::Runtime::pause).
    ///
    /// # Cancel safety
    /// When dropped, the saga was paused or not; the same call again says which.
    pub async fn pause(&self, key: impl AsRef<str>, reason: &str) -> Result<PauseOutcome, RuntimeError> {
        let key = Key::from_stored(key.as_ref())?;
        match self.pause_or_resume(PauseAction::Pause, &key, None, reason).await? {
            Ok(()) => Ok(PauseOutcome::Paused),
            Err((Refused::Ended, status)) => Ok(PauseOutcome::Ended(status)),
            Err((Refused::Paused, _)) => Ok(PauseOutcome::Already),
            Err((refusal, _)) => Err(refused(&key, refusal.to_string())),
        }
    }

    /// Resumes a saga, as [`Runtime::resume`](crate::Runtime::resume) does.
    ///
    /// # Errors
    /// Those of [`Runtime::resume`](crate::Runtime::resume).
    ///
    /// # Cancel safety
    /// When dropped, the saga was resumed or not; the same call again says which.
    pub async fn resume(&self, key: impl AsRef<str>, reason: &str) -> Result<ResumeOutcome, RuntimeError> {
        let key = Key::from_stored(key.as_ref())?;
        match self.pause_or_resume(PauseAction::Resume, &key, None, reason).await? {
            Ok(()) => Ok(ResumeOutcome::Resumed),
            Err((Refused::Ended | Refused::NotPaused, status)) => Ok(ResumeOutcome::NotPaused(status)),
            Err((refusal, _)) => Err(refused(&key, refusal.to_string())),
        }
    }

    /// Pauses a saga that is still at the revision that the operator saw.
    pub(crate) async fn pause_seen(&self, key: &Key, revision: u64, reason: &str) -> Result<(), RuntimeError> {
        let granted = self.pause_or_resume(PauseAction::Pause, key, Some(revision), reason).await?;
        granted.map_err(|(refusal, _)| refused(key, refusal.to_string()))
    }

    /// Resumes a saga that is still at the revision that the operator saw.
    pub(crate) async fn resume_seen(&self, key: &Key, revision: u64, reason: &str) -> Result<(), RuntimeError> {
        let granted = self.pause_or_resume(PauseAction::Resume, key, Some(revision), reason).await?;
        granted.map_err(|(refusal, _)| refused(key, refusal.to_string()))
    }

    async fn pause_or_resume(
        &self,
        wish: PauseAction,
        key: &Key,
        seen: Option<u64>,
        reason: &str,
    ) -> Result<Result<(), (Refused, Status)>, RuntimeError> {
        outside_step()?;
        let act = self.act(wish.word(), reason);
        if let Some(problem) = act.problem() {
            return Err(refused(key, problem));
        }
        until_applied(|| self.try_pause_or_resume(wish, key, seen, &act)).await
    }

    async fn try_pause_or_resume(
        &self,
        wish: PauseAction,
        key: &Key,
        seen: Option<u64>,
        act: &AuditEntry,
    ) -> Result<(), ControlError> {
        let stored = self.stored(key, seen).await?;
        let mut saga = self.instance(&stored)?;
        if stored.saga.status == Status::Stuck && saga.state.stuck.is_none() {
            let problem = "it got stuck because it could not be read; have it tried again first";
            return Err(unreadable(&stored.saga, problem).into());
        }
        let hand_on = self.next_work(&saga).await?;
        let (event, postponed) = match wish {
            PauseAction::Pause => (Event::Paused { by: act.actor.clone(), reason: act.reason.clone() }, Vec::new()),
            PauseAction::Resume => {
                let parked = saga.state.paused.as_ref().map(|pause| pause.parked.clone()).unwrap_or_default();
                (Event::Resumed, due_now(&stored, &parked))
            }
        };
        let advanced = self.decider()?.decide(&mut saga, event, &AttemptDetails::default(), hand_on);
        let mut prepared = advanced.map_err(|refusal| ControlError::Refused(refusal, stored.saga.status))?;
        if !postponed.is_empty() {
            prepared.leave_free(Duration::ZERO);
        }
        prepared.changes.postponed.extend(postponed);
        prepared.changes.history.push(act.entry(saga.id));
        match self.commit(key, prepared).await? {
            Ok(()) => Ok(()),
            Err(Miss::Saga(_) | Miss::Work(_)) => Err(ControlError::Moved),
            Err(miss) => Err(refused(key, format!("the action did not apply: {miss:?}")).into()),
        }
    }
}

impl PauseAction {
    const fn word(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }
}
