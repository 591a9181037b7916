//! The work row of a command.

use std::time::Duration;

use crate::engine::instance::SagaInstance;
use crate::machine;
use crate::store::{Lease, NewWork, Store, WorkId, WorkKind};

/// The row of a command; a lease says that this process has it already.
pub(crate) fn work_row<S: Store>(
    saga: &SagaInstance<S>,
    order: machine::Command,
    id: i64,
    due_in: Duration,
    lease: Option<Lease>,
) -> NewWork {
    let payload = match order {
        // Items have theirs from their list, and a list or a signal that is recorded is there.
        machine::Command::Do { step } if is_of_list(saga, step) || saga.state.steps[step].signal.is_some() => None,
        machine::Command::Do { step } => saga.inputs.of(step).map(|input| input.to_vec()),
        machine::Command::Undo { .. } => None,
    };
    let kind = match order {
        machine::Command::Do { .. } => WorkKind::Do,
        machine::Command::Undo { .. } => WorkKind::Undo,
    };
    let step = saga.definition.step_id(&saga.state, order);
    let row = NewWork::new(WorkId(id), saga.id, (&saga.tenant, &saga.key), &saga.definition.id, kind, step);
    NewWork { payload, due_in, lease, ..row }
}

pub(crate) fn is_of_list<S: Store>(saga: &SagaInstance<S>, step: usize) -> bool {
    saga.state.item_number(step).is_some() || saga.state.items_of(step).is_some()
}
