//! Sending a signal to a saga.

use std::time::Duration;

use super::control_error::{ControlError, until_applied};
use super::saga_control::SagaControl;
use crate::engine::admin::admin_context::{AdminContext, refused};
use crate::engine::commit::due_in;
use crate::engine::context::{RuntimeError, Settings, outside_step};
use crate::engine::message::check_value;
use crate::key::Key;
use crate::machine::{Refused, SagaState, StepPhase};
use crate::saga::StepDefinition;
use crate::step::{Signal, codec};
use crate::store::{Miss, SagaRow, SagaWithSteps, Store, WorkKind, WorkStatus};

/// The longest id of a signal.
const ID_BYTES_MAX: usize = 200;

/// The outcome of [`SagaControl::signal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalOutcome {
    /// The step that waits for it goes on with it.
    Delivered,
    /// It is kept until the saga comes to the step that waits for it.
    Buffered,
    /// A signal with this id was received before. Nothing was changed.
    Duplicate,
    /// The wait was over already: another signal was received, the time of the wait ended, or the saga no longer goes forward.
    TooLate,
}

impl<S: Store> SagaControl<S> {
    /// Sends a signal to the saga, for the step that waits for it: see
    /// [`SagaBuilder::wait_for`](crate::saga::SagaBuilder::wait_for). When it returns, what the returned value says is
    /// durable. A signal can be sent any number of times under the same `id`, and counts once; of two signals with
    /// different ids the first one counts.
    ///
    /// # Errors
    /// When there is no such saga yet: send it again later. When the saga has no step that waits for such a signal, or the
    /// step takes another form ([`RuntimeError::SignalForm`]); when its definition is not known here, or the store fails.
    ///
    /// # Cancel safety
    /// When dropped, the signal was received or not; the same call again says which.
    pub async fn signal<T: Signal>(&self, id: impl AsRef<str>, signal: &T) -> Result<SignalOutcome, RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(&self.key)?;
        let refused = |problem: String| refused(&key, problem);
        let id = id.as_ref();
        if id.is_empty() || id.len() > ID_BYTES_MAX {
            return Err(refused(format!(
                "a signal has an id of 1 to {ID_BYTES_MAX} bytes, the same when it is sent again"
            )));
        }
        let payload = codec::<T>().encode(signal).map_err(|error| refused(format!("the signal: {error}")))?;
        let max = self.ctx.tenant_store.payload_bytes_max().unwrap_or(Settings::default().payload_bytes_max);
        if payload.len() > max {
            let problem = format!("the signal has {} bytes; `payload_bytes_max` allows {max}", payload.len());
            return Err(refused(problem));
        }
        match until_applied(|| try_signal(&self.ctx, &key, self.seen, (T::NAME, id, &payload))).await? {
            Ok(outcome) => Ok(outcome),
            Err((Refused::Duplicate, _)) => Ok(SignalOutcome::Duplicate),
            Err((Refused::Decided, _)) => Ok(SignalOutcome::TooLate),
            Err((other, _)) => Err(refused(other.to_string())),
        }
    }
}

async fn try_signal<S: Store>(
    ctx: &AdminContext<S>,
    key: &Key,
    seen: Option<u64>,
    (name, id, payload): (&str, &str, &[u8]),
) -> Result<SignalOutcome, ControlError> {
    let stored = ctx.stored(key, seen).await?;
    let mut saga = ctx.instance(&stored)?;
    let shape = &saga.definition.shape;
    let step = shape.position(name).filter(|step| shape.awaits_signal(*step));
    let step = step.ok_or_else(|| refused(key, format!("it has no step that waits for `{name}`")))?;
    let decided = ctx.decider()?.decide_signal(&mut saga, step, id, payload);
    let mut pending = decided.map_err(|refused| ControlError::Refused(refused, stored.saga.status))?;
    check_form(key, saga.step(step), payload)?;
    let row = waiting(&stored, name);
    // A saga that begins later has its first rows already, and does not begin sooner because of a signal.
    let begins_in = match row {
        Some(_) => begins_in(ctx, &stored.saga, &saga.state).await?,
        None => Duration::ZERO,
    };
    let is_early = !begins_in.is_zero() || saga.state.steps[step].phase == StepPhase::Ready;
    let outcome = if is_early { SignalOutcome::Buffered } else { SignalOutcome::Delivered };
    // A worker that holds the row already finds the signal when it records.
    pending.postpone_rows(row.filter(|row| row.owner.is_none()).map(|row| due_in(row, begins_in)));
    match ctx.commit(key, pending).await? {
        Ok(()) => Ok(outcome),
        Err(Miss::Saga(_) | Miss::NoSaga(_) | Miss::Work(_) | Miss::Record(_)) => Err(ControlError::Moved),
        Err(miss) => Err(refused(key, format!("the signal was not received: {miss:?}")).into()),
    }
}

/// How long it is until a saga begins that was started for later. When the row of its wait is due does not tell: the definition may
/// have another limit by now.
async fn begins_in<S: Store>(
    ctx: &AdminContext<S>,
    row: &SagaRow,
    state: &SagaState,
) -> Result<Duration, RuntimeError> {
    let Some(delay) = state.delay else { return Ok(Duration::ZERO) };
    let delay = i64::try_from(delay.as_micros()).unwrap_or(i64::MAX);
    let begins_at = row.started_at.0.saturating_add(delay);
    let left = begins_at.saturating_sub(ctx.tenant_store.store.now().await?.0);
    Ok(Duration::from_micros(u64::try_from(left).unwrap_or_default()))
}

/// The sender may have another version of the signal's type. A signal that was received decides, so one that the next step
/// could not read is refused here.
fn check_form<S: Store>(key: &Key, step: &StepDefinition<S>, payload: &[u8]) -> Result<(), RuntimeError> {
    check_value(step.check_output, payload).map_err(|problem| {
        let (key, step) = (key.to_string(), step.name.to_owned());
        RuntimeError::SignalForm { key, step, problem }
    })
}

/// The row of the step that waits, if the saga has come to it.
fn waiting<'a>(stored: &'a SagaWithSteps, name: &str) -> Option<&'a WorkStatus> {
    stored.work.iter().find(|row| row.kind == WorkKind::Do && row.step.as_str() == name)
}
