//! Holding sagas up, and letting them go on.

use std::sync::Arc;
use std::time::Duration;

use super::act::AuditEntry;
use super::command::WorkItem;
use super::error::RuntimeError;
use super::guard::outside_step;
use super::missed::ControlError;
use super::prepared::{AttemptDetails, NextSlot, NextWork};
use super::runtime::Runtime;
use super::saga_desk::{SagaAdmin, refused, unreadable};
use super::shared::EngineContext;
use crate::key::Key;
use crate::machine::{Event, Refused};
use crate::store::{Miss, Postponed, SagaWithSteps, Status, Store};

/// For how long a command of a paused saga is put off: until the saga is resumed, which makes it due. A hundred years.
const WHILE_PAUSED: Duration = Duration::from_hours(100 * 365 * 24);

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

impl<S: Store> Runtime<S> {
    /// Pauses a saga: nothing new of it begins, no step, no undo and no further attempt, until it is [resumed](Self::resume).
    /// What a worker has taken comes to its end and is recorded. It can be asked as often as wanted: a saga that is paused
    /// or has ended already is left as it is, which the answer says.
    ///
    /// A paused saga can be cancelled: it turns round, and is undone when it is resumed. One that needs a person needs one
    /// when it is resumed. A saga that has nothing left to do ends, and its pause with it.
    ///
    /// To say who paused it, use [`Runtime::admin`].
    ///
    /// # Errors
    /// When there is no such saga, or its definition is not known here; or when the store fails.
    ///
    /// # Cancel safety
    /// When dropped, the saga was paused or not; the same call again says which.
    ///
    /// # Examples
    /// ```
    /// use saga_core::engine::{PauseOutcome, ResumeOutcome};
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::store::Status;
    /// use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation)]
    /// async fn send_newsletter(_issue: u32) -> Result<(), StepError> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let newsletter = Saga::named("newsletter").input::<u32>().step::<send_newsletter>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&newsletter).start().await?;
    ///
    /// let tomorrow = std::time::Duration::from_hours(24);
    /// let started = runtime.start_after(&newsletter, "issue-7", 7, tomorrow).await?;
    /// let desk = runtime.admin().by("ann");
    /// assert_eq!(desk.pause("issue-7", "a picture is missing").await?, PauseOutcome::Paused);
    /// assert_eq!(desk.pause("issue-7", "a picture is missing").await?, PauseOutcome::Already);
    ///
    /// let status = runtime.saga("issue-7").await?.ok_or("it is there")?;
    /// assert_eq!(status.summary.status, Status::Paused);
    /// assert_eq!(status.summary.paused.and_then(|pause| pause.by).as_deref(), Some("ann"));
    ///
    /// assert_eq!(desk.resume("issue-7", "it was found").await?, ResumeOutcome::Resumed);
    /// # desk.cancel("issue-7", "the example is over").await?;
    /// # started.outcome().await?;
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pause(&self, key: impl AsRef<str>, reason: &str) -> Result<PauseOutcome, RuntimeError> {
        self.admin().pause(key, reason).await
    }

    /// Lets a paused saga go on: what waited begins, and an attempt that fell due meanwhile is made at once. One that is
    /// not paused is left as it is, which the answer says.
    ///
    /// # Errors
    /// Those of [`Runtime::pause`].
    ///
    /// # Cancel safety
    /// When dropped, the saga was resumed or not; the same call again says which.
    pub async fn resume(&self, key: impl AsRef<str>, reason: &str) -> Result<ResumeOutcome, RuntimeError> {
        self.admin().resume(key, reason).await
    }
}

impl<S: Store> SagaAdmin<S> {
    /// Pauses a saga, as [`Runtime::pause`] does.
    ///
    /// # Errors
    /// Those of [`Runtime::pause`].
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

    /// Resumes a saga, as [`Runtime::resume`] does.
    ///
    /// # Errors
    /// Those of [`Runtime::resume`].
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

    /// Pauses a saga that still stands as somebody saw it.
    pub(super) async fn pause_seen(&self, key: &Key, revision: u64, reason: &str) -> Result<(), RuntimeError> {
        let granted = self.pause_or_resume(PauseAction::Pause, key, Some(revision), reason).await?;
        granted.map_err(|(refusal, _)| refused(key, refusal.to_string()))
    }

    /// Resumes a saga that still stands as somebody saw it.
    pub(super) async fn resume_seen(&self, key: &Key, revision: u64, reason: &str) -> Result<(), RuntimeError> {
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
        loop {
            match self.try_pause_or_resume(wish, key, seen, &act).await {
                Ok(()) => return Ok(Ok(())),
                Err(ControlError::Moved) => {}
                Err(ControlError::Refused(refusal, status)) => return Ok(Err((refusal, status))),
                Err(ControlError::Error(error)) => return Err(error),
            }
        }
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
        let engine = self.engine()?;
        let hand_on = self.hand_on(&engine, &saga).await?;
        let (event, postponed) = match wish {
            PauseAction::Pause => (Event::Paused { by: act.actor.clone(), reason: act.reason.clone() }, Vec::new()),
            PauseAction::Resume => {
                let parked = saga.state.paused.as_ref().map(|pause| pause.parked.clone()).unwrap_or_default();
                (Event::Resumed, due_now(&stored, &parked))
            }
        };
        let advanced = engine.decide(&mut saga, event, &AttemptDetails::default(), hand_on);
        let mut prepared = advanced.map_err(|refusal| ControlError::Refused(refusal, stored.saga.status))?;
        if !postponed.is_empty() {
            prepared.leave_free(Duration::ZERO);
        }
        prepared.changes.postponed.extend(postponed);
        prepared.changes.history.push(act.entry(saga.id));
        match self.commit(&engine, key, prepared).await? {
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

/// What was put off while the saga was paused. What somebody has goes on by itself.
pub(super) fn due_now(stored: &SagaWithSteps, parked: &[i64]) -> Vec<Postponed> {
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

impl<S: Store> EngineContext<S> {
    /// A command fell due, or was given back, and its saga is paused: it waits, with all that is known of it, until the
    /// saga is resumed. That moves the saga, so that of this and a resumption at the same moment one looks again.
    pub(super) async fn park(self: &Arc<Self>, command: WorkItem<S>) {
        let Some(ids) = self.take_ids(command.saga.definition.width).await else { return };
        let mut saga = command.saga.clone();
        let hand_on = NextWork { ids: ids.start, slot: NextSlot::Nowhere };
        let parked = Event::Parked { work: command.work.id.0 };
        // It is not refused, and nothing follows from it.
        let Ok(mut prepared) = self.decide(&mut saga, parked, &AttemptDetails::default(), hand_on) else { return };
        prepared.changes.postponed.push(Postponed {
            work: command.work,
            due_in: WHILE_PAUSED,
            attempts: command.attempts,
            in_doubt: command.in_doubt,
            error: None,
        });
        match self.commit_decision(prepared).await {
            Ok(Ok(())) => {}
            // The saga was resumed, or moved otherwise: whoever claims it next sees it as it is.
            Ok(Err(_)) | Err(_) => self.release(&[command.work]).await,
        }
    }
}
