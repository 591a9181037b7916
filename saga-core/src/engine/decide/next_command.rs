//! A command before it is issued: how long it waits, and whether this process can run it from memory.

use std::time::Duration;

use crate::engine::instance::{SagaInstance, idle_for};
use crate::machine::{self, Effect, held_locks};
use crate::step::NeededOutput;
use crate::store::Store;

/// The call of a step that ended without a definite answer.
#[derive(Clone, Copy)]
pub(crate) struct UnansweredCall {
    pub(crate) step: usize,
    /// How long ago it began.
    pub(crate) took: Duration,
}

/// A compensation that does not know whether there is anything to undo waits until a call that is still on its way
/// must have landed: twice the step's time limit after the last call began. When that was is known of the call that has
/// just ended; of others the whole time is left.
pub(crate) fn settle_time_left<S: Store>(
    saga: &SagaInstance<S>,
    order: machine::Command,
    ended: Option<UnansweredCall>,
) -> Duration {
    match order {
        machine::Command::Undo { step, known: false, .. }
            if saga.definition.effect_of(&saga.state, machine::Command::Do { step }) == Effect::External =>
        {
            let took = ended.filter(|call| call.step == step).map_or(Duration::ZERO, |call| call.took);
            saga.step(step).settle_time().saturating_sub(took)
        }
        _ => Duration::ZERO,
    }
}

/// How long the command waits before it is due, if it is one that only waits.
pub(crate) fn time_to_wait<S: Store>(saga: &SagaInstance<S>, order: machine::Command) -> Option<Duration> {
    let machine::Command::Do { step } = order else { return None };
    let of = saga.definition.steps.get(step)?;
    let is_there = saga.state.steps[step].signal.is_some();
    idle_for(of, saga.input_of(step)).map(|idle| if is_there { Duration::ZERO } else { idle })
}

/// Whether the outputs that the command needs are in memory. A worker that claims its row reads all of them.
pub(crate) fn is_in_memory<S: Store>(saga: &SagaInstance<S>, order: machine::Command) -> bool {
    if saga.definition.width == 1 {
        return true;
    }
    let step = order.step();
    let of = saga.step(step);
    // The outputs of items are read when they are joined.
    let is_listed = saga.state.items_of(step).is_some();
    let has_input = of.input.is_none()
        || is_listed
        || saga.inputs.of(saga.state.base(step)).is_some()
        || saga.inputs.of(step).is_some();
    let has_own = match order {
        machine::Command::Undo { known: true, .. } => saga.own_output_of(step).is_some(),
        _ => true,
    };
    let is_known = |needed: &NeededOutput| {
        saga.outputs.get(needed.step).is_some() || (needed.is_optional && saga.outputs.is_passed_by(needed.step))
    };
    has_input && has_own && of.needs.outputs.iter().all(is_known) && has_locks_to_carry(saga, step)
}

/// Whether the semantic locks that a command to another service carries are in memory.
fn has_locks_to_carry<S: Store>(saga: &SagaInstance<S>, step: usize) -> bool {
    let definition = &saga.definition;
    if !definition.takes_locks || !matches!(definition.shape.effect(&saga.state, step), Effect::Remote { .. }) {
        return true;
    }
    let held = held_locks(&definition.shape, &saga.state);
    held.into_iter().all(|lock| saga.outputs.get(definition.steps[lock].name).is_some())
}
