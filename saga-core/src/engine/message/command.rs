//! The commands and undos that a coordinator sends.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::carried_locks::locks_of;
use super::messages::Messages;
use crate::engine::instance::SagaInstance;
use crate::machine::{self, Effect};
use crate::store::{Answer, Headers, MessageId, MessageKind, NewMessage, Store};

/// The content of an undo: the input of the step, and its output if it is known.
#[derive(Serialize, Deserialize)]
pub(crate) struct UndoContent<'a> {
    #[serde(borrow)]
    pub(crate) input: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<&'a RawValue>,
}

pub(crate) fn undo_content(input: &[u8], output: Option<&[u8]>) -> Option<Vec<u8>> {
    let input = serde_json::from_slice(input).ok()?;
    let output = output.map(serde_json::from_slice).transpose().ok()?;
    serde_json::to_vec(&UndoContent { input, output }).ok()
}

impl Messages {
    /// The command or undo message of a remote step: the same each time.
    pub(crate) fn command_message<S: Store>(
        &self,
        saga: &SagaInstance<S>,
        order: machine::Command,
    ) -> Option<NewMessage> {
        let step = order.step();
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
        let mut headers = Headers {
            saga_key: Some(saga.key.to_string()),
            step: Some(saga.doing(step).to_string()),
            service: Some(service.to_owned()),
            reply_to: self.settings.service.clone(),
            answer,
            ..Headers::default()
        };
        headers.traceparent = saga.state.traceparent().map(str::to_owned);
        headers.locks = locks_of(saga);
        Some(NewMessage {
            event_type: saga.definition.step_id(&saga.state, order).to_string(),
            payload,
            headers,
            ..NewMessage::to_service(kind, MessageId(Uuid::from_u128(sent.message)), &saga.tenant, service)
        })
    }
}
