//! What happens when the deadline of a saga passes.

use std::sync::Arc;
use std::time::Duration;

use super::cancel::SagaDesk;
use super::shared::Shared;
use crate::key::StepId;
use crate::machine::{Deadline, SagaState, Timer, set_deadline};
use crate::saga::Definition;
use crate::store::{Changes, NewWork, Postponed, SagaRow, Store, WorkId, WorkKind, WorkRef};

/// When a deadline is looked at again whose saga could not be called off.
const PAUSE: Duration = Duration::from_mins(1);

/// When a saga begins, and by when it must have come to its pivot.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct When {
    pub(super) delay: Duration,
    /// Counted from the beginning; nothing where the definition decides.
    pub(super) within: Option<Duration>,
}

impl<S: Store> Shared<S> {
    /// The row of a saga's deadline is claimed: the saga is called off, unless that came too late.
    pub(super) async fn deadline_passed(self: &Arc<Self>, work: WorkRef, row: &SagaRow) {
        if let Err(error) = SagaDesk::of(self, &row.tenant).end_overdue(&row.key, work).await {
            tracing::warn!(%error, key = %row.key, "a deadline passed, and its saga could not be called off; trying again");
            // What cannot be read today may be readable tomorrow, and nobody is to be busy with it until then.
            let error = Some(error.to_string());
            let postponed = Postponed { work, due_in: PAUSE, attempts: 0, maybe: false, error };
            let applied = self.recorder.record(Changes { postponed: vec![postponed], ..Changes::default() }).await;
            if applied.is_err() {
                self.give_back(&[work]).await;
            }
        }
    }
}

/// The row that falls due at the deadline of a new saga, if it has one: the last of those that it is started with.
pub(super) fn deadline_row<S: Store>(
    definition: &Definition<S>,
    state: &mut SagaState,
    when: When,
    commands: &[NewWork],
) -> Option<NewWork> {
    let within = when.within.or(definition.deadline)?;
    let first = commands.first()?;
    let deadline = Deadline { timer: Timer::started_with(commands.len()), within };
    set_deadline(&definition.shape, state, deadline).then(|| NewWork {
        id: WorkId(0),
        kind: WorkKind::Deadline,
        step: StepId::of_deadline(),
        payload: None,
        due_in: when.delay.saturating_add(within),
        lease: None,
        tried: None,
        ..first.clone()
    })
}
