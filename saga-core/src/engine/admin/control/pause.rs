//! Pausing and resuming a saga.

use std::time::Duration;

use super::control_error::{Applied, ControlError, until_applied};
use super::control_outcome::ControlOutcome;
use super::due_now::due_now;
use super::saga_control::SagaControl;
use crate::engine::admin::admin_context::{AdminContext, refused, unreadable};
use crate::engine::admin::audit::AuditEntry;
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::instance::AttemptDetails;
use crate::key::Key;
use crate::machine::{Event, Refused};
use crate::store::{Miss, Status, Store};

/// What is wanted.
#[derive(Clone, Copy)]
enum PauseAction {
    Pause,
    Resume,
}

impl<S: Store> SagaControl<S> {
    /// Pauses the saga: no step, no undo and no further attempt of it begins until it is [resumed](Self::resume).
    /// Attempts that are running finish and are recorded. It can be called any number of times: a saga that is paused
    /// or has ended already is left as it is, and the returned value says so.
    ///
    /// A paused saga can be cancelled: it starts compensating, and is undone once it is resumed. A stuck saga is
    /// still stuck when it is resumed. A saga that has nothing left to do ends, and its pause with it.
    ///
    /// # Errors
    /// Those of every [action](Self).
    ///
    /// # Cancel safety
    /// When dropped, the saga was paused or not; the same call again says which.
    ///
    /// # Examples
    /// ```
    /// use saga_core::engine::ControlOutcome;
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
    /// let started = runtime.start(&newsletter, "issue-7", 7).after(tomorrow).await?;
    /// let issue = runtime.admin().actor("ann").control("issue-7");
    /// assert_eq!(issue.pause("a picture is missing").await?, ControlOutcome::Applied);
    /// assert_eq!(issue.pause("a picture is missing").await?, ControlOutcome::Already);
    ///
    /// let status = runtime.status("issue-7").await?.ok_or("it is there")?;
    /// assert_eq!(status.summary.status, Status::Paused);
    /// assert_eq!(status.summary.paused.and_then(|pause| pause.actor).as_deref(), Some("ann"));
    ///
    /// assert_eq!(issue.resume("it was found").await?, ControlOutcome::Applied);
    /// # issue.cancel("the example is over").await?;
    /// # started.outcome().await?;
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pause(&self, reason: &str) -> Result<ControlOutcome, RuntimeError> {
        pause(&self.ctx, &Key::from_stored(&self.key)?, self.seen, reason).await
    }

    /// Lets a paused saga go on: commands that waited begin, and an attempt that fell due meanwhile is made at once. A
    /// saga that is not paused is left as it is, and the returned value says so.
    ///
    /// # Errors
    /// Those of every [action](Self).
    ///
    /// # Cancel safety
    /// When dropped, the saga was resumed or not; the same call again says which.
    pub async fn resume(&self, reason: &str) -> Result<ControlOutcome, RuntimeError> {
        resume(&self.ctx, &Key::from_stored(&self.key)?, self.seen, reason).await
    }
}

pub(in crate::engine::admin) async fn pause<S: Store>(
    ctx: &AdminContext<S>,
    key: &Key,
    seen: Option<u64>,
    reason: &str,
) -> Result<ControlOutcome, RuntimeError> {
    match pause_or_resume(ctx, PauseAction::Pause, key, seen, reason).await? {
        Ok(()) => Ok(ControlOutcome::Applied),
        Err((Refused::Ended, status)) => Ok(ControlOutcome::Ended(status)),
        Err((Refused::Paused, _)) => Ok(ControlOutcome::Already),
        Err((refusal, _)) => Err(refused(key, refusal.to_string())),
    }
}

pub(in crate::engine::admin) async fn resume<S: Store>(
    ctx: &AdminContext<S>,
    key: &Key,
    seen: Option<u64>,
    reason: &str,
) -> Result<ControlOutcome, RuntimeError> {
    match pause_or_resume(ctx, PauseAction::Resume, key, seen, reason).await? {
        Ok(()) => Ok(ControlOutcome::Applied),
        Err((Refused::Ended, status)) => Ok(ControlOutcome::Ended(status)),
        Err((Refused::NotPaused, _)) => Ok(ControlOutcome::Already),
        Err((refusal, _)) => Err(refused(key, refusal.to_string())),
    }
}

async fn pause_or_resume<S: Store>(
    ctx: &AdminContext<S>,
    action: PauseAction,
    key: &Key,
    seen: Option<u64>,
    reason: &str,
) -> Result<Applied<()>, RuntimeError> {
    outside_step()?;
    let entry = ctx.audit_entry(action.name(), reason);
    if let Some(problem) = entry.problem() {
        return Err(refused(key, problem));
    }
    until_applied(|| try_pause_or_resume(ctx, action, key, seen, &entry)).await
}

async fn try_pause_or_resume<S: Store>(
    ctx: &AdminContext<S>,
    action: PauseAction,
    key: &Key,
    seen: Option<u64>,
    entry: &AuditEntry,
) -> Result<(), ControlError> {
    let stored = ctx.stored(key, seen).await?;
    let mut saga = ctx.instance(&stored)?;
    if stored.saga.status == Status::Stuck && saga.state.stuck.is_none() {
        let problem = "it got stuck because it could not be read; have it tried again first";
        return Err(unreadable(&stored.saga, problem).into());
    }
    let next_work = ctx.next_work(&saga).await?;
    let (event, postponed) = match action {
        PauseAction::Pause => (Event::Paused { by: entry.actor.clone(), reason: entry.reason.clone() }, Vec::new()),
        PauseAction::Resume => {
            let parked = saga.state.paused.as_ref().map(|pause| pause.parked.clone()).unwrap_or_default();
            (Event::Resumed, due_now(&stored, &parked))
        }
    };
    let decided = ctx.decider()?.decide(&mut saga, event, &AttemptDetails::default(), next_work);
    let mut pending = decided.map_err(|refusal| ControlError::Refused(refusal, stored.saga.status))?;
    if !postponed.is_empty() {
        pending.leave_free(Duration::ZERO);
    }
    pending.changes.postponed.extend(postponed);
    pending.changes.history.push(entry.entry(saga.id));
    match ctx.commit(key, pending).await? {
        Ok(()) => Ok(()),
        Err(Miss::Saga(_) | Miss::NoSaga(_) | Miss::Work(_)) => Err(ControlError::Moved),
        Err(miss) => Err(refused(key, format!("the action did not apply: {miss:?}")).into()),
    }
}

impl PauseAction {
    const fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }
}
