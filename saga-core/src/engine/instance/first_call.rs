//! What a transaction calls first for a command: the function of its step, or of the step behind a semantic lock.

use super::work_item::WorkItem;
use crate::machine::{Command, Effect};
use crate::saga::{Idle, StepRun};
use crate::step::StepOptions;
use crate::store::Store;

/// Whether the step of the command takes a semantic lock.
pub(crate) fn takes_semantic_lock<S: Store>(command: &WorkItem<S>) -> bool {
    !command.is_undo() && matches!(command.step().run, StepRun::Idle(Idle::Lock(_)))
}

/// The name and the options of the function that the transaction of the command calls first; nothing if there is none. A step that takes
/// a semantic lock has no function, and that of the step behind it follows in the same transaction.
pub(crate) fn first_call<S: Store>(command: &WorkItem<S>) -> Option<(&'static str, &StepOptions)> {
    if command.effect() == Effect::Transactional {
        return Some((command.step().name, command.options()));
    }
    let saga = &command.saga;
    if !takes_semantic_lock(command) || command.recovered || !command.chains || saga.definition.width > 1 {
        return None;
    }
    let step = command.step_index() + 1;
    let next = saga.definition.steps.get(step)?;
    let is_called = saga.definition.effect_of(&saga.state, Command::Do { step }) == Effect::Transactional;
    (is_called && next.options.max_concurrent.is_none()).then_some((next.name, &next.options))
}
