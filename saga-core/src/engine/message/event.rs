//! The events that steps emit.

use super::messages::Messages;
use crate::engine::context::random_uuid;
use crate::engine::instance::SagaInstance;
use crate::store::{Headers, MessageId, NewMessage, Store};

impl Messages {
    /// An event of a saga. Its topic is the name of the saga definition; in a choreography it is the name of the event.
    pub(crate) fn event_message<S: Store>(
        &self,
        saga: &mut SagaInstance<S>,
        name: &str,
        payload: Vec<u8>,
    ) -> NewMessage {
        saga.state.messages += 1;
        let traceparent = saga.state.traceparent().map(str::to_owned);
        let headers = Headers {
            saga_key: Some(saga.definition.coordinator_key(&saga.key).to_string()),
            traceparent,
            ..Headers::default()
        };
        let topic = if saga.definition.told.is_some() { name } else { &saga.definition.id.name };
        let id = MessageId(random_uuid(&*self.env));
        NewMessage {
            position: saga.state.messages,
            headers,
            ..NewMessage::event(id, &saga.tenant, (topic, saga.key.as_str()), name, payload)
        }
    }
}
