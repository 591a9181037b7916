//! What a step that is hosted for another service tells that service.

use uuid::Uuid;

use super::messages::Messages;
use crate::engine::context::random_uuid;
use crate::engine::instance::SagaInstance;
use crate::key::StepId;
use crate::machine::{Caller, answer_again, answer_of};
use crate::step::Rejection;
use crate::store::{Answer, Headers, MessageId, MessageKind, NewMessage, Store};

/// A reason as it travels: JSON of its message and, where there are any, its details.
pub(crate) fn reason_bytes(reason: &Rejection) -> Vec<u8> {
    // A message and JSON text always encode.
    serde_json::to_vec(reason).unwrap_or_default()
}

impl Messages {
    /// What is told when a hosted step has moved: nothing as long as there is nothing new to tell.
    pub(crate) fn reply_to_move<S: Store>(&self, saga: &SagaInstance<S>, before: Option<Answer>) -> Option<NewMessage> {
        let caller = saga.state.caller.as_ref()?;
        let answer = answer_of(&saga.state).filter(|answer| Some(*answer) != before)?;
        self.reply(saga, caller, answer)
    }

    /// What is told when the same is asked again, if there is anything to tell yet.
    pub(crate) fn reply_again<S: Store>(
        &self,
        saga: &SagaInstance<S>,
        asked: u128,
        is_undo: bool,
    ) -> Option<NewMessage> {
        let caller = saga.state.caller.as_ref()?;
        let answer = answer_again(&saga.state, is_undo)?;
        let asked = Some(asked);
        let caller = if is_undo {
            Caller { undo: asked, ..(**caller).clone() }
        } else {
            Caller { command: asked, undo: None, ..(**caller).clone() }
        };
        self.reply(saga, &caller, answer)
    }

    fn reply<S: Store>(&self, saga: &SagaInstance<S>, caller: &Caller, answer: Answer) -> Option<NewMessage> {
        if caller.reply_to.is_empty() {
            // An event asked for the step: subscribers learn the outcome from events.
            return None;
        }
        let step = saga.step(0).name;
        let payload = match answer {
            Answer::Done => saga.outputs.get(step).map_or_else(|| b"null".to_vec(), |output| output.to_vec()),
            Answer::Stuck => {
                let reason = saga.state.stuck.as_ref().map_or("", |stuck| &stuck.reason);
                reason_bytes(&Rejection::new(reason))
            }
            _ => saga.state.failure.as_ref().map(|failure| reason_bytes(&failure.reason)).unwrap_or_default(),
        };
        let message = self.reply_to_caller(saga, caller)?;
        Some(NewMessage { payload, headers: Headers { answer: Some(answer), ..message.headers }, ..message })
    }

    /// The progress of a hosted step or its undo, if a coordinator waits for a reply.
    pub(crate) fn report_message<S: Store>(
        &self,
        saga: &SagaInstance<S>,
        is_undo: bool,
        payload: Vec<u8>,
    ) -> Option<NewMessage> {
        let caller = saga.state.caller.as_ref().filter(|caller| !caller.reply_to.is_empty())?;
        // A step that is taken back while it runs is under way for who asked for it.
        let undo = caller.undo.filter(|_| is_undo);
        let message = self.reply_to_caller(saga, &Caller { undo, ..(**caller).clone() })?;
        Some(NewMessage { kind: MessageKind::Report, payload, ..message })
    }

    /// A reply without its answer and its content.
    fn reply_to_caller<S: Store>(&self, saga: &SagaInstance<S>, caller: &Caller) -> Option<NewMessage> {
        let step = saga.key.numbered(StepId::doing(saga.step(0).name)).to_string();
        let asked = caller.undo.or(caller.command)?;
        let service = saga.definition.id.name.split('/').next().unwrap_or_default();
        let (key, correlation) = (saga.key.asked_for().to_string(), MessageId(Uuid::from_u128(asked)));
        let headers = Headers::of_reply(key, step.clone(), service, &caller.reply_to, correlation);
        let id = MessageId(random_uuid(&*self.env));
        Some(NewMessage {
            event_type: if caller.undo.is_some() { format!("{step}:undo") } else { step },
            headers: Headers { traceparent: caller.traceparent.clone(), ..headers },
            ..NewMessage::to_service(MessageKind::Reply, id, &saga.tenant, &caller.reply_to)
        })
    }
}
