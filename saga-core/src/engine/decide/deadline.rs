//! What happens when the deadline of a saga passes.

use std::time::Duration;

use crate::key::StepId;
use crate::machine::{Deadline, SagaState, Timer, set_deadline};
use crate::saga::{Definition, LONGEST};
use crate::store::{HistoryEntry, HistoryKind, NewWork, SagaId, Store, WorkKind};

/// When a saga begins, and by when it must have come to its pivot.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StartTiming {
    pub(crate) delay: Duration,
    /// Counted from the beginning; nothing where the definition decides.
    pub(crate) within: Option<Duration>,
}

/// What the history says of it.
pub(crate) fn overdue(saga: SagaId, within: Duration) -> HistoryEntry {
    let detail = format!("its deadline passed, {within:?} after it was to begin");
    HistoryEntry { saga, step: None, kind: HistoryKind::Deadline, attempt: 0, detail }
}

/// Gives a new saga its deadline, if it has one.
pub(crate) fn deadline_of<S: Store>(
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

/// The row that falls due at the deadline of a saga that begins after that delay. It is of the saga of the other row.
pub(crate) fn deadline_row(deadline: Deadline, delay: Duration, other: &NewWork) -> NewWork {
    let (id, owner) = (deadline.timer.row(other.saga), (&other.tenant, &other.key));
    let step = StepId::of_deadline();
    let row = NewWork::new(id, other.saga, owner, &other.definition, WorkKind::Deadline, step);
    NewWork { due_in: delay.saturating_add(deadline.within), ..row }
}
