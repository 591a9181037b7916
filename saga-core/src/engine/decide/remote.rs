//! Steps that another service hosts: their commands leave by the outbox, and a work row waits for the reply.
//!
//! The row is not leased. When it falls due there was no reply, and the same message goes again: the same id, the same
//! bytes. It goes when the reply is recorded.

use std::time::Duration;

use uuid::Uuid;

use super::decider::Decider;
use super::next_command::is_in_memory;
use super::work_row::work_row;
use crate::engine::context::random_uuid;
use crate::engine::instance::{NextWork, PendingCommit, SagaInstance, checksum};
use crate::machine::{self, Effect, SagaState, Sent, StepShape};
use crate::saga::Definition;
use crate::store::{NewSaga, Store};

/// A command that a saga begins with, where another service hosts its step: what its reply will name is decided now.
/// `mapped` is what a mapping gave the step.
pub(crate) fn note_sent<S: Store>(
    definition: &Definition<S>,
    state: &mut SagaState,
    step: usize,
    id: Uuid,
    mapped: Option<&[u8]>,
) {
    if matches!(definition.shape.effect(state, step), Effect::Remote { .. }) {
        state.note_sent(step, id.as_u128(), 0, mapped.map_or(0, checksum));
    }
}

/// The same, once the row that waits for the reply has its id.
pub(crate) fn note_row<S: Store>(definition: &Definition<S>, saga: &mut NewSaga) {
    let remote: Vec<(usize, i64)> = saga
        .commands
        .iter()
        .filter_map(|command| {
            let step = definition.shape.position(command.step.step())?;
            // A for-each step belongs to this service. Its items may be remote, and they do not exist yet.
            let StepShape { effect, each, .. } = &definition.shape.steps[step];
            let is_remote = each.is_none() && matches!(effect, Effect::Remote { .. });
            is_remote.then_some((step, command.id.0))
        })
        .collect();
    if remote.is_empty() {
        return;
    }
    let Ok(mut state) = SagaState::decode(&saga.state, definition.steps.len()) else { return };
    for (step, row) in remote {
        if let Some(sent) = &mut state.steps[step].sent {
            sent.work = row;
        }
    }
    saga.state = state.encode();
}

impl<S: Store> Decider<S> {
    /// Sends a command to the service that hosts its step, in the commit that gives it out.
    pub(crate) fn send_remote(
        &self,
        saga: &mut SagaInstance<S>,
        order: machine::Command,
        due_in: Duration,
        hand_on: NextWork,
        prepared: &mut PendingCommit<S>,
    ) {
        let step = order.step();
        let fresh = random_uuid(&*self.env).as_u128();
        match order {
            machine::Command::Do { .. } => {
                // What tells this step's input from another one; 0 where no mapping gave it.
                let is_item = saga.state.item_number(step).is_some();
                let given = saga.inputs.of(step).filter(|_| !is_item).map_or(0, |input| checksum(input));
                saga.state.note_sent(step, fresh, hand_on.ids, given);
            }
            machine::Command::Undo { .. } => {
                saga.state.steps[step].undo_sent = Some(Sent { message: fresh, work: hand_on.ids, given: 0 });
            }
        }
        // If the input is not in memory, the worker that claims the row reads it and sends the command. The outputs
        // of items are not read while the saga is decided about.
        let is_sent = due_in.is_zero() && is_in_memory(saga, order) && saga.pick_item(step).is_ok();
        if is_sent {
            prepared.changes.messages.extend(self.messages.command_message(saga, order));
        }
        let due_in = if is_sent { self.settings.reply_timeout } else { due_in };
        prepared.leave_free(due_in);
        prepared.awaits_reply = true;
        prepared.changes.commands.push(work_row(saga, order, hand_on.ids, due_in, None));
    }
}
