//! The states that hosted steps and sub-sagas begin with.

use std::sync::Arc;

use crate::engine::instance::WorkItem;
use crate::machine::{self, AtDeadline, Caller, Event, SagaState};
use crate::saga::Definition;
use crate::store::{NewSaga, SagaId, Store};

/// The state of a hosted step that begins for this caller.
pub(crate) fn hosted_state<S: Store>(definition: &Definition<S>, caller: Caller) -> SagaState {
    let (mut state, _) = machine::start(&definition.shape);
    state.caller = Some(Box::new(caller));
    state
}

/// The state of a hosted step whose undo arrives before its command, and the event that follows. `is_done` says whether
/// the caller knows that the step took effect.
pub(crate) fn state_of_early_undo<S: Store>(
    definition: &Definition<S>,
    is_done: bool,
    caller: Caller,
) -> (SagaState, Event) {
    let (mut state, event) = machine::undo_before_command(&definition.shape, is_done);
    state.caller = Some(Box::new(caller));
    (state, event)
}

/// The tombstone of a sub-saga that must not be started any more.
pub(crate) fn tombstone<S: Store>(definition: &Arc<Definition<S>>, new: NewSaga, id: SagaId, reason: &str) -> NewSaga {
    let state = machine::tombstone(&definition.shape, reason);
    NewSaga { id, status: state.status(), state: state.encode(), commands: Vec::new(), ..new }
}

/// What the deadline of a pivot is decided as, by what is known of it: nothing, where it never arrived.
pub(crate) fn at_pivot_deadline(pivot: Option<&SagaState>) -> AtDeadline {
    machine::at_deadline(pivot)
}

/// What a claimed command is decided as without being run, since its saga no longer wants it.
pub(crate) fn unwanted<S: Store>(command: &WorkItem<S>) -> Option<Event> {
    let saga = &command.saga;
    let undo = saga.definition.shape.undo(&saga.state, command.step_index());
    let row = machine::ClaimedRow {
        in_doubt: command.in_doubt,
        recovered: command.recovered,
        is_late: command.late_success.is_some(),
        has_resolution: command.resolve().is_some(),
        ..machine::ClaimedRow::first(command.command, command.effect(), undo)
    };
    row.unwanted(&saga.state).or_else(|| row.without_lock(&saga.definition.shape, &saga.state))
}

/// Why the event would be refused by a saga in this state, if it would.
pub(crate) fn refusal_of<S: Store>(definition: &Definition<S>, mut state: SagaState, event: Event) -> Option<String> {
    machine::apply(&definition.shape, &mut state, event).err().map(|refused| refused.to_string())
}
