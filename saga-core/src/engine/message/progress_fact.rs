//! What a service reports of its steps to the service that follows the saga.

use super::messages::Messages;
use crate::engine::context::random_uuid;
use crate::engine::instance::SagaInstance;
use crate::machine::{Fact, reported};
use crate::store::{Answer, Headers, MessageId, MessageKind, NewMessage, Store};

impl Messages {
    /// What a service that reports its steps says of one that has moved.
    pub(crate) fn report<S: Store>(&self, saga: &SagaInstance<S>, before: Option<Answer>) -> Option<NewMessage> {
        let follower = saga.definition.told.as_ref()?.reports_to.as_deref()?;
        let (became, reason) = reported(before, &saga.state)?;
        let (_, step) = saga.key.as_str().rsplit_once('>')?;
        let service = saga.definition.id.name.split('/').next().unwrap_or_default();
        let fact = Fact { revision: saga.version + 1, became, reason };
        Some(NewMessage {
            event_type: step.to_owned(),
            // Texts and numbers always encode.
            payload: serde_json::to_vec(&fact).unwrap_or_default(),
            headers: Headers {
                saga_key: Some(saga.key.asked_for().to_string()),
                step: Some(step.to_owned()),
                service: Some(follower.to_owned()),
                reply_to: Some(service.to_owned()),
                ..Headers::default()
            },
            ..NewMessage::to_service(MessageKind::Fact, MessageId(random_uuid(&*self.env)), &saga.tenant, follower)
        })
    }
}
