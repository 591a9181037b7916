//! Messages from outside for the sagas that wait for them.

use std::time::Duration;

use super::control_error::{ControlError, until_applied};
use super::saga_admin::{SagaAdmin, refused};
use crate::engine::context::{RuntimeError, Settings, outside_step};
use crate::engine::instance::idle_for;
use crate::engine::message::check_value;
use crate::key::Key;
use crate::machine::{Refused, StepPhase};
use crate::saga::StepDefinition;
use crate::step::{Signal, codec};
use crate::store::{Miss, Postponed, SagaWithSteps, Store, WorkKind, WorkStatus};

/// The longest id of a signal.
const ID_BYTES_MAX: usize = 200;

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalOutcome {
    /// The step that waits for it goes on with it.
    Delivered,
    /// The turn of the step that waits for it has not come. It is kept until then.
    Buffered,
    /// It was received before, by its id, and nothing was changed.
    Duplicate,
    /// It was decided before: by another signal, by the limit of the wait, or by the end of the saga's way forward.
    TooLate,
}

impl<S: Store> SagaAdmin<S> {
    /// Sends a signal, as [`Runtime::signal`](crate::Runtime::signal) does.
    ///
    /// # Errors
    /// Those of [`Runtime::signal`](crate::Runtime::signal).
    ///
    /// # Cancel safety
    /// When dropped, the signal was received or not; the same call again says which.
    pub async fn signal<T: Signal>(
        &self,
        key: impl AsRef<str>,
        id: impl AsRef<str>,
        signal: &T,
    ) -> Result<SignalOutcome, RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(key.as_ref())?;
        let refused = |problem: String| refused(&key, problem);
        let id = id.as_ref();
        if id.is_empty() || id.len() > ID_BYTES_MAX {
            return Err(refused(format!(
                "a signal has an id of 1 to {ID_BYTES_MAX} bytes, the same when it is sent again"
            )));
        }
        let payload = codec::<T>().encode(signal).map_err(|error| refused(format!("the signal: {error}")))?;
        let max = self.desk.payload_bytes_max().unwrap_or(Settings::default().payload_bytes_max);
        if payload.len() > max {
            let problem = format!("the signal has {} bytes; `payload_bytes_max` allows {max}", payload.len());
            return Err(refused(problem));
        }
        match until_applied(|| self.try_to_signal(&key, T::NAME, id, &payload)).await? {
            Ok(outcome) => Ok(outcome),
            Err((Refused::Duplicate, _)) => Ok(SignalOutcome::Duplicate),
            Err((Refused::Decided, _)) => Ok(SignalOutcome::TooLate),
            Err((other, _)) => Err(refused(other.to_string())),
        }
    }

    async fn try_to_signal(
        &self,
        key: &Key,
        name: &str,
        id: &str,
        payload: &[u8],
    ) -> Result<SignalOutcome, ControlError> {
        let stored = self.stored(key, None).await?;
        let mut saga = self.instance(&stored)?;
        let shape = &saga.definition.shape;
        let step = shape.position(name).filter(|step| shape.awaits_signal(*step));
        let step = step.ok_or_else(|| refused(key, format!("it has no step that waits for `{name}`")))?;
        let decided = self.decider()?.decide_signal(&mut saga, step, id, payload);
        let mut pending = decided.map_err(|refused| ControlError::Refused(refused, stored.saga.status))?;
        check_form(key, saga.step(step), payload)?;
        let waits = waiting(&stored, name);
        // A saga that begins later has its first rows, and does not begin for that.
        let begins_in = match waits {
            Some(row) => self.begins_in(saga.step(step), row).await?,
            None => Duration::ZERO,
        };
        let is_early = !begins_in.is_zero() || saga.state.steps[step].phase == StepPhase::Ready;
        let outcome = if is_early { SignalOutcome::Buffered } else { SignalOutcome::Delivered };
        pending.postpone_rows(waits.filter(|row| row.owner.is_none()).map(|row| due(row, begins_in)));
        match self.commit(key, pending).await? {
            Ok(()) => Ok(outcome),
            Err(Miss::Saga(_) | Miss::Work(_) | Miss::Record(_)) => Err(ControlError::Moved),
            Err(miss) => Err(refused(key, format!("the signal was not received: {miss:?}")).into()),
        }
    }
}

impl<S: Store> SagaAdmin<S> {
    /// How long it is until the wait begins that the row stands for: it is due when that has lasted its time.
    async fn begins_in(&self, step: &StepDefinition<S>, row: &WorkStatus) -> Result<Duration, RuntimeError> {
        let within = idle_for(step, row.payload.as_deref().unwrap_or_default()).unwrap_or_default();
        let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let begins_at = row.due_at.0.saturating_sub(micros(within));
        let left = begins_at.saturating_sub(self.desk.store.now().await?.0);
        Ok(Duration::from_micros(u64::try_from(left).unwrap_or_default()))
    }
}

/// Whoever sends it may have another version of its type. Once it is received it decides, and the step behind it would
/// have to do with what it cannot read.
fn check_form<S: Store>(key: &Key, step: &StepDefinition<S>, payload: &[u8]) -> Result<(), RuntimeError> {
    check_value(step.check_output, payload).map_err(|problem| {
        let (key, step) = (key.to_string(), step.name.to_owned());
        RuntimeError::SignalForm { key, step, problem }
    })
}

/// The row of the step that waits, if its turn has come.
fn waiting<'a>(stored: &'a SagaWithSteps, name: &str) -> Option<&'a WorkStatus> {
    stored.work.iter().find(|row| row.kind == WorkKind::Do && row.step.as_str() == name)
}

/// A row that falls due so soon. Whoever has one already finds out when it records.
fn due(row: &WorkStatus, due_in: Duration) -> Postponed {
    let (work, attempts, maybe) = (row.work, row.attempts, row.in_doubt);
    Postponed { work, due_in, attempts, in_doubt: maybe, error: None }
}
