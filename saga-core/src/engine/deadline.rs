//! What happens when the deadline of a saga passes.

use std::sync::Arc;
use std::time::Duration;

use super::cancel::CancelCause;
use super::error::RuntimeError;
use super::missed::ControlError;
use super::saga_desk::SagaAdmin;
use super::shared::EngineContext;
use crate::key::{Key, StepId};
use crate::log;
use crate::machine::{Deadline, SagaState, Timer, set_deadline};
use crate::saga::{Definition, LONGEST};
use crate::store::{
    Changes, Condition, HistoryEntry, HistoryKind, NewWork, Postponed, SagaId, SagaRow, Store, WorkKind, WorkRef,
};

/// When a deadline is looked at again whose saga could not be called off.
const LOOK_AGAIN_IN: Duration = Duration::from_mins(1);

/// When a saga begins, and by when it must have come to its pivot.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StartTiming {
    pub(super) delay: Duration,
    /// Counted from the beginning; nothing where the definition decides.
    pub(super) within: Option<Duration>,
}

impl<S: Store> EngineContext<S> {
    /// The row of a saga's deadline is claimed: the saga is called off, unless that came too late.
    pub(super) async fn deadline_passed(self: &Arc<Self>, work: WorkRef, row: &SagaRow) {
        if let Err(error) = SagaAdmin::of(self, &row.tenant).end_overdue(&row.key, work).await {
            log::warn!(%error, key = %row.key, "a deadline passed, and its saga could not be called off; trying again");
            // What cannot be read today may be readable tomorrow, and nobody is to be busy with it until then.
            let error = Some(error.to_string());
            let postponed = Postponed { work, due_in: LOOK_AGAIN_IN, attempts: 0, in_doubt: false, error };
            let applied = self.recorder.record(Changes { postponed: vec![postponed], ..Changes::default() }).await;
            if applied.is_err() {
                self.release(&[work]).await;
            }
        }
    }
}

impl<S: Store> SagaAdmin<S> {
    /// Calls off a saga whose deadline passed, as the claimed row says. The row goes, also where the saga is done in time.
    async fn end_overdue(&self, key: &Key, work: WorkRef) -> Result<(), RuntimeError> {
        loop {
            match self.try_to_compensate(key, None, CancelCause::Overdue(work)).await {
                Ok(()) => return Ok(()),
                Err(ControlError::Moved) => {
                    // Whoever moved it may have withdrawn the row, or somebody else has it.
                    let stored = self.stored(key, None).await?;
                    if !stored.work.iter().any(|row| row.work == work) {
                        return Ok(());
                    }
                }
                Err(ControlError::Refused(..)) => {
                    let changes = Changes { finished: vec![(work, Condition::Held)], ..Changes::default() };
                    // Where it is not there any more, it is gone already.
                    let _gone = self.record(changes).await?;
                    return Ok(());
                }
                Err(ControlError::Error(error)) => return Err(error),
            }
        }
    }
}

/// What the history says of it.
pub(super) fn overdue(saga: SagaId, within: Duration) -> HistoryEntry {
    let detail = format!("its deadline passed, {within:?} after it was to begin");
    HistoryEntry { saga, step: None, kind: HistoryKind::Deadline, attempt: 0, detail }
}

/// Gives a new saga its deadline, if it has one.
pub(super) fn deadline_of<S: Store>(
    definition: &Definition<S>,
    state: &mut SagaState,
    when: StartTiming,
    timer: Timer,
) -> Option<Deadline> {
    state.within = when.within;
    let within = when.within.or(definition.deadline)?.min(LONGEST);
    let deadline = Deadline { timer, within };
    set_deadline(&definition.shape, state, deadline).then_some(deadline)
}

/// The row that falls due at the deadline of a saga that begins after that delay. All but its time is as in another row
/// of it.
pub(super) fn deadline_row(deadline: Deadline, delay: Duration, other: &NewWork) -> NewWork {
    NewWork {
        id: deadline.timer.row(other.saga),
        kind: WorkKind::Deadline,
        step: StepId::of_deadline(),
        payload: None,
        due_in: delay.saturating_add(deadline.within),
        lease: None,
        tried: None,
        ..other.clone()
    }
}
