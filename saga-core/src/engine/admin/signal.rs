//! Messages from outside for the sagas that wait for them.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::control_error::ControlError;
use super::saga_admin::{SagaAdmin, refused};
use crate::engine::context::{RuntimeError, Settings, outside_step};
use crate::engine::instance::idle_for;
use crate::engine::message::check_value;
use crate::key::{Key, StepId};
use crate::machine::{self, Event, Refused, SagaState, StepPhase};
use crate::saga::StepDefinition;
use crate::step::{Signal, codec};
use crate::store::{
    Advance, Changes, HistoryEntry, HistoryKind, Miss, NewRecord, Postponed, RecordedOutcome, SagaWithSteps, Store,
    WorkKind, WorkStatus,
};

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
    /// Sends a signal, as [`Runtime::signal`](super::Runtime::signal) does.
    ///
    /// # Errors
    /// Those of [`Runtime::signal`](super::Runtime::signal).
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
        loop {
            match self.try_to_signal(&key, T::NAME, id, &payload).await {
                Ok(receipt) => return Ok(receipt),
                Err(ControlError::Moved) => {}
                Err(ControlError::Refused(Refused::Received, _)) => return Ok(SignalOutcome::Duplicate),
                Err(ControlError::Refused(Refused::Decided, _)) => return Ok(SignalOutcome::TooLate),
                Err(ControlError::Refused(other, _)) => return Err(refused(other.to_string())),
                Err(ControlError::Error(error)) => return Err(error),
            }
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
        let (definition, mut state) = self.read(&stored.saga)?;
        let step = definition.shape.position(name).filter(|step| definition.shape.awaits_signal(*step));
        let step = step.ok_or_else(|| refused(key, format!("it has no step that waits for `{name}`")))?;
        let event = Event::Signalled { step, id: hash_of(id) };
        let decision = machine::apply(&definition.shape, &mut state, event);
        let decision = decision.map_err(|refused| ControlError::Refused(refused, stored.saga.status))?;
        check_form(key, &definition.steps[step], payload)?;
        let position = decision.signalled.map_or(0, |(_, position)| position);
        let waits = waiting(&stored, name);
        // A saga that begins later has its first rows, and does not begin for that.
        let begins_in = match waits {
            Some(row) => self.begins_in(&definition.steps[step], row).await?,
            None => Duration::ZERO,
        };
        let is_early = !begins_in.is_zero() || state.steps[step].phase == StepPhase::Ready;
        let receipt = if is_early { SignalOutcome::Buffered } else { SignalOutcome::Delivered };
        let changes = Changes {
            postponed: waits.filter(|row| row.owner.is_none()).map(|row| due(row, begins_in)).into_iter().collect(),
            ..received(&stored, &state, name, id, payload, position)
        };
        let applied = self.record(changes).await?;
        match applied {
            Ok(()) => {
                self.desk.wake_workers();
                Ok(receipt)
            }
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

/// Checks the type of a signal before it is received: the sender may have another version of the type. A received
/// signal decides the wait, so the next step would have to read it.
fn check_form<S: Store>(key: &Key, step: &StepDefinition<S>, payload: &[u8]) -> Result<(), RuntimeError> {
    check_value(step.check_output, payload).map_err(|problem| {
        let (key, step) = (key.to_string(), step.name.to_owned());
        RuntimeError::SignalForm { key, step, problem }
    })
}

/// The message gets a record of its own, so that the worker that claims the step's command next finds it.
fn received(stored: &SagaWithSteps, state: &SagaState, name: &str, id: &str, payload: &[u8], position: u32) -> Changes {
    let saga = &stored.saga;
    let record = NewRecord {
        saga: saga.id,
        tenant: saga.tenant.clone(),
        key: saga.key.clone(),
        step: StepId::of_item(name, 0),
        outcome: RecordedOutcome::Done,
        // Text always encodes.
        output: serde_json::to_vec(id).ok(),
        error: None,
        input: Some(payload.to_vec()),
        position,
        attempts: 0,
        took: Duration::ZERO,
    };
    let line = HistoryEntry {
        saga: saga.id,
        step: Some(StepId::doing(name)),
        kind: HistoryKind::Signal,
        attempt: 0,
        detail: format!("{id:?} was received"),
    };
    Changes {
        saga: Some(Advance { id: saga.id, expected: saga.version, status: state.status(), state: state.encode() }),
        records: vec![record],
        history: vec![line],
        ..Changes::default()
    }
}

/// The row of the step that waits, if its turn has come.
fn waiting<'a>(stored: &'a SagaWithSteps, name: &str) -> Option<&'a WorkStatus> {
    stored.work.iter().find(|row| row.kind == WorkKind::Do && row.step.as_str() == name)
}

/// Makes the row due after this time. A worker that holds the row finds the signal when it records.
fn due(row: &WorkStatus, due_in: Duration) -> Postponed {
    let (work, attempts, maybe) = (row.work, row.attempts, row.in_doubt);
    Postponed { work, due_in, attempts, in_doubt: maybe, error: None }
}

/// The id as the saga's state keeps it, whatever its length.
fn hash_of(id: &str) -> u128 {
    let hash = Sha256::digest(id.as_bytes());
    hash.iter().take(16).fold(0, |all, byte| all << 8 | u128::from(*byte))
}
