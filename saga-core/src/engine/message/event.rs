//! Events that steps emit.

use std::time::Duration;

use super::messages::Messages;
use crate::engine::context::random_uuid;
use crate::engine::instance::SagaInstance;
use crate::store::{Headers, MessageId, MessageKind, NewMessage, Store, lane_of};

impl Messages {
    /// An event of a saga. Those of a saga with a definition have its name as their topic; those of a step that events
    /// ask for have their own.
    pub(crate) fn event_message<S: Store>(
        &self,
        saga: &mut SagaInstance<S>,
        name: &str,
        payload: Vec<u8>,
    ) -> NewMessage {
        saga.state.messages += 1;
        let traceparent = saga.state.caller.as_ref().and_then(|caller| caller.traceparent.clone());
        let headers = Headers { saga_key: Some(saga.outside_key().to_string()), traceparent, ..Headers::default() };
        let topic = if saga.definition.told.is_some() { name } else { &saga.definition.id.name };
        NewMessage {
            id: MessageId(random_uuid(&*self.env)),
            kind: MessageKind::Event,
            tenant: saga.tenant.clone(),
            aggregate_type: topic.to_owned(),
            aggregate_id: saga.key.to_string(),
            event_type: name.to_owned(),
            payload,
            position: saga.state.messages,
            lane: lane_of(&saga.tenant, topic, saga.key.as_str()),
            headers,
            due_in: Duration::ZERO,
        }
    }
}
