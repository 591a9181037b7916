//! Steps that another service hosts: their commands leave by the outbox, and a work row waits for the reply.
//!
//! The row is not leased. When it falls due there was no reply, and the same message goes again: the same id, the same
//! bytes. It goes when the reply is recorded.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::command::WorkItem;
use super::decide::work_row;
use super::in_flight::SagaInstance;
use super::inputs::checksum;
use super::prepared::{NextWork, PendingCommit};
use super::put_back::TakenWork;
use super::shared::EngineContext;
use crate::log;
use crate::machine::{self, Effect, SagaState, Sent, StepShape};
use crate::saga::Definition;
use crate::store::{
    Answer, Changes, Headers, MessageId, MessageKind, NewMessage, NewSaga, Postponed, Store, lane_of, service_topic,
};

/// By how much the wait for a reply may have grown: so many doublings.
const DOUBLINGS_MAX: u32 = 5;

/// What an undo brings: what its step took, and what it returned if that is known.
#[derive(Serialize, Deserialize)]
pub(super) struct UndoContent<'a> {
    #[serde(borrow)]
    pub(super) input: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<&'a RawValue>,
}

impl<S: Store> EngineContext<S> {
    /// Sends a command to the service that hosts its step, in the commit that gives it out.
    pub(super) fn send_remote(
        &self,
        saga: &mut SagaInstance<S>,
        order: machine::Command,
        due_in: Duration,
        hand_on: NextWork,
        prepared: &mut PendingCommit<S>,
    ) {
        let (machine::Command::Do { step } | machine::Command::Undo { step, .. }) = order;
        let fresh = self.random_uuid().as_u128();
        match order {
            machine::Command::Do { .. } => {
                let given = saga.given_checksum(step);
                saga.state.note_sent(step, fresh, hand_on.ids, given);
            }
            machine::Command::Undo { .. } => {
                saga.state.steps[step].undo_sent = Some(Sent { message: fresh, work: hand_on.ids, given: 0 });
            }
        }
        // Where what it brings is not here, whoever claims its row reads that, and sends it: what an item gave is not read
        // by those who decide about its saga.
        let is_sent = due_in.is_zero() && saga.knows_all_for(order) && saga.pick_item(step).is_ok();
        if is_sent {
            prepared.changes.messages.extend(self.command_message(saga, order));
        }
        let due_in = if is_sent { self.settings.reply_timeout } else { due_in };
        prepared.leave_free(due_in);
        prepared.awaits_reply = true;
        prepared.changes.commands.push(work_row(saga, order, hand_on.ids, due_in, None));
    }

    /// Sends a command whose reply did not come, or that was never sent.
    pub(super) fn resend(self: &Arc<Self>, command: WorkItem<S>) {
        let (shared, under_way) = (Arc::clone(self), self.tasks.enter());
        self.spawn(
            "send again",
            Box::pin(async move {
                let sending = async {
                    let changes = shared.resend_changes(&command);
                    let due_in = changes.postponed.first().map(|postponed| postponed.due_in);
                    match shared.recorder.record(changes).await {
                        Ok(Ok(())) => {
                            shared.wake_relay();
                            shared.announce_work(due_in.unwrap_or_default());
                        }
                        // It was answered meanwhile, or somebody else has it.
                        Ok(Err(_)) => {}
                        Err(_) => shared.release(&[command.work]).await,
                    }
                };
                shared.watch_over("send again", &[TakenWork::of(&command)], sending).await;
                drop((command, under_way));
            }),
        );
    }

    fn resend_changes(&self, command: &WorkItem<S>) -> Changes {
        let attempts = command.attempts + 1;
        let was_sent = command.attempts > 0 || command.work.epoch > 1;
        let due_in = self.settings.reply_timeout.saturating_mul(1 << command.attempts.min(DOUBLINGS_MAX));
        if command.attempts > 0 {
            let (key, step) = (&command.saga.key, command.step_id());
            log::info!(%key, %step, attempts, "no reply yet; the command is sent again");
        }
        let error = was_sent.then(|| format!("no reply yet; it was sent {attempts} times"));
        let postponed = Postponed { work: command.work, due_in, attempts, in_doubt: true, error };
        let messages = self.command_message(&command.saga, command.command).into_iter().collect();
        Changes { postponed: vec![postponed], messages, ..Changes::default() }
    }

    /// The message that asks for a step: the same whenever it is made.
    fn command_message(&self, saga: &SagaInstance<S>, order: machine::Command) -> Option<NewMessage> {
        let (machine::Command::Do { step } | machine::Command::Undo { step, .. }) = order;
        let Effect::Remote { service } = saga.definition.shape.effect(&saga.state, step) else { return None };
        let state = &saga.state.steps[step];
        let (kind, sent, payload, answer) = match order {
            machine::Command::Do { .. } => (MessageKind::Command, state.sent?, saga.input_of(step).to_vec(), None),
            machine::Command::Undo { known, .. } => {
                let output = saga.own_output_of(step).filter(|_| known);
                let payload = undo_content(saga.input_of(step), output.map(|output| &**output))?;
                let answer = if output.is_some() { Answer::Done } else { Answer::Unknown };
                (MessageKind::Undo, state.undo_sent?, payload, Some(answer))
            }
        };
        let headers = Headers {
            saga_key: Some(saga.key.to_string()),
            step: Some(saga.doing(step).to_string()),
            service: Some(service.to_owned()),
            reply_to: self.settings.service.clone(),
            answer,
            ..Headers::default()
        };
        Some(NewMessage {
            kind,
            event_type: saga.step_id(order).to_string(),
            payload,
            headers,
            ..message_to(MessageId(Uuid::from_u128(sent.message)), &saga.tenant, service)
        })
    }
}

/// An empty message to a service. It has an ordering key of its own: nothing is promised about its order.
pub(super) fn message_to(id: MessageId, tenant: &crate::key::Tenant, service: &str) -> NewMessage {
    let (topic, key) = (service_topic(service), id.to_string());
    NewMessage {
        id,
        kind: MessageKind::Event,
        tenant: tenant.clone(),
        lane: lane_of(tenant, &topic, &key),
        aggregate_type: topic,
        aggregate_id: key,
        event_type: String::new(),
        payload: Vec::new(),
        position: 1,
        headers: Headers::default(),
        due_in: Duration::ZERO,
    }
}

/// A command that a saga begins with, where another service hosts its step: what its reply will name is decided now.
/// `mapped` is what a mapping gave the step.
pub(super) fn note_sent<S: Store>(
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
pub(super) fn note_row<S: Store>(definition: &Definition<S>, saga: &mut NewSaga) {
    let remote: Vec<(usize, i64)> = saga
        .commands
        .iter()
        .filter_map(|command| {
            let step = definition.shape.position(command.step.step())?;
            // A step that is done for each item of a list is nobody else's; its items are, and none is there yet.
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

fn undo_content(input: &[u8], output: Option<&[u8]>) -> Option<Vec<u8>> {
    let input = serde_json::from_slice(input).ok()?;
    let output = output.map(serde_json::from_slice).transpose().ok()?;
    serde_json::to_vec(&UndoContent { input, output }).ok()
}
