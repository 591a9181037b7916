//! Holding sagas up, and letting them go on.

use std::sync::Arc;
use std::time::Duration;

use super::act::Act;
use super::command::Command;
use super::error::RuntimeError;
use super::guard::outside_step;
use super::prepared::{Findings, HandOn};
use super::saga_desk::{SagaDesk, refused, unreadable};
use super::shared::Shared;
use crate::key::Key;
use crate::machine::{Event, Refused};
use crate::store::{Miss, Postponed, SagaWithSteps, Status, Store};

/// For how long a command of a paused saga is put off: until the saga is resumed, which makes it due. A hundred years.
const WHILE_PAUSED: Duration = Duration::from_hours(100 * 365 * 24);

/// What became of the wish to pause a saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pausing {
    /// The saga is paused by this call.
    Paused,
    /// It was paused already, and nothing was changed.
    Already,
    /// It has ended, and nothing was changed.
    Ended(Status),
}

/// What became of the wish to resume a saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// The saga goes on by this call.
    Resumed,
    /// It is not paused, and nothing was changed: this is how it stands.
    NotPaused(Status),
}

/// What is wanted.
#[derive(Clone, Copy)]
enum Wish {
    Pause,
    Resume,
}

/// Why it was not done.
enum Missed {
    /// It moved, or a command of it did: it is to be looked at again.
    Moved,
    /// The machine refuses.
    Refused(Refused, Status),
    /// It cannot be.
    Error(RuntimeError),
}

impl<S: Store> SagaDesk<S> {
    /// Pauses a saga, as [`Runtime::pause`](super::Runtime::pause) does.
    ///
    /// # Errors
    /// Those of [`Runtime::pause`](super::Runtime::pause).
    ///
    /// # Cancel safety
    /// When dropped, the saga was paused or not; the same call again says which.
    pub async fn pause(&self, key: impl AsRef<str>, reason: &str) -> Result<Pausing, RuntimeError> {
        let key = Key::from_stored(key.as_ref())?;
        match self.grant_wish(Wish::Pause, &key, None, reason).await? {
            Ok(()) => Ok(Pausing::Paused),
            Err((Refused::Ended, status)) => Ok(Pausing::Ended(status)),
            Err((Refused::Paused, _)) => Ok(Pausing::Already),
            Err((refusal, _)) => Err(refused(&key, refusal.to_string())),
        }
    }

    /// Resumes a saga, as [`Runtime::resume`](super::Runtime::resume) does.
    ///
    /// # Errors
    /// Those of [`Runtime::resume`](super::Runtime::resume).
    ///
    /// # Cancel safety
    /// When dropped, the saga was resumed or not; the same call again says which.
    pub async fn resume(&self, key: impl AsRef<str>, reason: &str) -> Result<Resumption, RuntimeError> {
        let key = Key::from_stored(key.as_ref())?;
        match self.grant_wish(Wish::Resume, &key, None, reason).await? {
            Ok(()) => Ok(Resumption::Resumed),
            Err((Refused::Ended | Refused::NotPaused, status)) => Ok(Resumption::NotPaused(status)),
            Err((refusal, _)) => Err(refused(&key, refusal.to_string())),
        }
    }

    /// Pauses a saga that still stands as somebody saw it.
    pub(super) async fn pause_seen(&self, key: &Key, revision: u64, reason: &str) -> Result<(), RuntimeError> {
        let granted = self.grant_wish(Wish::Pause, key, Some(revision), reason).await?;
        granted.map_err(|(refusal, _)| refused(key, refusal.to_string()))
    }

    /// Resumes a saga that still stands as somebody saw it.
    pub(super) async fn resume_seen(&self, key: &Key, revision: u64, reason: &str) -> Result<(), RuntimeError> {
        let granted = self.grant_wish(Wish::Resume, key, Some(revision), reason).await?;
        granted.map_err(|(refusal, _)| refused(key, refusal.to_string()))
    }

    async fn grant_wish(
        &self,
        wish: Wish,
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
            match self.try_to_grant(wish, key, seen, &act).await {
                Ok(()) => return Ok(Ok(())),
                Err(Missed::Moved) => {}
                Err(Missed::Refused(refusal, status)) => return Ok(Err((refusal, status))),
                Err(Missed::Error(error)) => return Err(error),
            }
        }
    }

    async fn try_to_grant(&self, wish: Wish, key: &Key, seen: Option<u64>, act: &Act) -> Result<(), Missed> {
        let stored = self.stored(key, seen).await?;
        let mut saga = self.in_flight(&stored)?;
        if stored.saga.status == Status::Stuck && saga.state.stuck.is_none() {
            let problem = "it got stuck because it could not be read; have it tried again first";
            return Err(unreadable(&stored.saga, problem).into());
        }
        let engine = self.engine()?;
        let hand_on = self.hand_on(&engine, &saga).await?;
        let (event, postponed) = match wish {
            Wish::Pause => (Event::Paused { by: act.by.clone(), reason: act.reason.clone() }, Vec::new()),
            Wish::Resume => {
                let parked = saga.state.paused.as_ref().map(|pause| pause.parked.clone()).unwrap_or_default();
                (Event::Resumed, due_now(&stored, &parked))
            }
        };
        let advanced = engine.advance(&mut saga, event, &Findings::default(), hand_on);
        let mut prepared = advanced.map_err(|refusal| Missed::Refused(refusal, stored.saga.status))?;
        if !postponed.is_empty() {
            prepared.leave_free(Duration::ZERO);
        }
        prepared.changes.postponed.extend(postponed);
        prepared.changes.history.push(act.entry(saga.id));
        match self.apply(&engine, key, prepared).await? {
            Ok(()) => Ok(()),
            Err(Miss::Saga(_) | Miss::Work(_)) => Err(Missed::Moved),
            Err(miss) => Err(refused(key, format!("the action did not apply: {miss:?}")).into()),
        }
    }
}

impl Wish {
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
            maybe: work.maybe,
            error: None,
        })
        .collect()
}

impl<S: Store> Shared<S> {
    /// A command fell due, or was given back, and its saga is paused: it waits, with all that is known of it, until the
    /// saga is resumed. That moves the saga, so that of this and a resumption at the same moment one looks again.
    pub(super) async fn park(self: &Arc<Self>, command: Command<S>) {
        let Some(ids) = self.take_ids(command.saga.definition.width).await else { return };
        let mut saga = command.saga.clone();
        let hand_on = HandOn { ids: ids.start, has_place: false };
        let parked = Event::Parked { work: command.work.id.0 };
        // It is not refused, and nothing follows from it.
        let Ok(mut prepared) = self.advance(&mut saga, parked, &Findings::default(), hand_on) else { return };
        prepared.changes.postponed.push(Postponed {
            work: command.work,
            due_in: WHILE_PAUSED,
            attempts: command.attempts,
            maybe: command.maybe,
            error: None,
        });
        match self.apply_prepared(prepared).await {
            Ok(Ok(())) => {}
            // The saga was resumed, or moved otherwise: whoever claims it next sees it as it is.
            Ok(Err(_)) | Err(_) => self.give_back(&[command.work]).await,
        }
    }
}

impl From<RuntimeError> for Missed {
    fn from(error: RuntimeError) -> Self {
        Self::Error(error)
    }
}
