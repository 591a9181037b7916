//! Finds the reactions to an event.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::handle_error::HandleError;
use super::validator::Validator;
use crate::key::Key;
use crate::saga::Definition;
use crate::service::{Reaction, Reacts};
use crate::store::{DeadLetterReason, Message, MessageId, MessageKind, Store};

/// The longest name of a service, or of a step with its number, with some room.
const NAME_BYTES_MAX: usize = 80;

pub(crate) fn saga_key_of(message: &Message) -> Result<Key, HandleError> {
    let key = Key::from_message(message.headers.saga_key.as_deref().unwrap_or_default());
    key.map_err(|problem| HandleError::Dead(DeadLetterReason::Unreadable, problem.to_string()))
}

/// The id of the event itself, not of the message for one reaction.
pub(crate) fn event_id_of(message: &Message) -> MessageId {
    message.headers.correlation.unwrap_or(message.id)
}

/// The event as a service received it. Its saga is the one in its header, or else its ordering key.
pub(crate) fn for_service(event: Message, service: &str) -> Message {
    debug_assert_eq!(event.kind, MessageKind::Event);
    let mut event = event;
    event.headers.service = Some(service.to_owned());
    (event.headers.step, event.headers.correlation) = (None, None);
    event.headers.saga_key.get_or_insert_with(|| event.key.clone());
    event
}

/// The message for one reaction to an event. Its id is made from the event and the reaction, so it is always the same.
pub(crate) fn for_reaction(event: &Message, service: &str, reaction: &str) -> Message {
    let mut hash = Sha256::new_with_prefix("reaction-1");
    for part in [event.id.0.as_bytes().as_slice(), service.as_bytes(), reaction.as_bytes()] {
        hash.update(part);
        hash.update([0]);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    let mut message = for_service(event.clone(), service);
    message.headers.correlation = Some(event.id);
    message.headers.step = Some(reaction.to_owned());
    message.id = MessageId(Uuid::from_bytes(bytes));
    message
}

impl<S: Store> Validator<S> {
    /// The topics of events that a service subscribes to.
    pub(crate) fn topics_of(&self, service: &str) -> Vec<String> {
        let mut topics: Vec<String> =
            self.reactions_of(service).map(|reaction| reaction.topic.as_ref().to_owned()).collect();
        topics.sort_unstable();
        topics.dedup();
        topics
    }

    /// One message for each reaction of the service to an event. An event without a reaction is kept as it is, and becomes a dead
    /// letter; but it is ignored if it only shares its topic with events that have reactions.
    pub(crate) fn for_reactions(&self, mut event: Message, service: &str) -> Vec<Message> {
        if let Some(now) = self.store_calls.clock.now(self.ctx.env.now()) {
            // Otherwise a deadline would be late by as much as the sender's clock is ahead.
            event.committed_at = event.committed_at.min(now);
        }
        let wanted: Vec<_> = self.reactions_of(service).filter(|reaction| reaction.is_to(&event)).collect();
        if wanted.is_empty() {
            let shares_topic =
                |reaction: &Reaction<S>| *reaction.topic == *event.topic && reaction.event != event.topic;
            return if self.reactions_of(service).any(shares_topic) {
                Vec::new()
            } else {
                vec![for_service(event, service)]
            };
        }
        wanted.into_iter().map(|reaction| for_reaction(&event, service, &reaction.name())).collect()
    }

    /// Checks that an event can be handled.
    pub(crate) fn check_event(&self, message: &Message, service: &str) -> Result<(), HandleError> {
        let key = message.headers.saga_key.as_deref().unwrap_or_default();
        Key::from_message(key)
            .map_err(|problem| HandleError::Dead(DeadLetterReason::Unreadable, problem.to_string()))?;
        self.reaction(message, service).map(drop)
    }

    /// Checks that a report can be handled.
    pub(crate) fn check_fact(&self, message: &Message, service: &str) -> Result<(), HandleError> {
        if !self.reactions_of(service).any(|reaction| matches!(reaction.does, Reacts::Mark(_))) {
            let detail = format!("the service `{service}` does not follow sagas; let one of its events mark them");
            return Err(HandleError::Dead(DeadLetterReason::NoSubscriber, detail));
        }
        for (name, text) in [("saga-step", &message.headers.step), ("saga-reply-to", &message.headers.reply_to)] {
            if text.as_ref().is_none_or(|text| text.is_empty() || text.len() > NAME_BYTES_MAX) {
                let detail = format!("the header `{name}` is missing, or too long");
                return Err(HandleError::Dead(DeadLetterReason::Unreadable, detail));
            }
        }
        saga_key_of(message).map(drop)
    }

    /// Whether the reaction runs a step, so that the event can be handled without a row of its own.
    pub(crate) fn runs_step(&self, message: &Message, service: &str) -> bool {
        matches!(self.reaction(message, service).map(|reaction| &reaction.does), Ok(Reacts::Run { .. }))
    }

    pub(crate) fn reaction(&self, message: &Message, service: &str) -> Result<&Reaction<S>, HandleError> {
        let name = message.headers.step.as_deref().unwrap_or_default();
        let found = self.reactions_of(service).find(|reaction| reaction.is_to(message) && reaction.name() == name);
        found.ok_or_else(|| {
            let detail = format!("the service `{service}` does nothing when the event `{}` comes", message.event_type);
            HandleError::Dead(DeadLetterReason::NoSubscriber, detail)
        })
    }

    pub(crate) fn reactions_of(&self, service: &str) -> impl Iterator<Item = &Reaction<S>> {
        self.ctx.reactions.get(service).into_iter().flat_map(|reactions| reactions.iter())
    }

    /// The definition of a step that a service hosts here.
    pub(crate) fn hosted(&self, service: &str, step: &str) -> Option<&Arc<Definition<S>>> {
        self.ctx.hosted.get(&(service.to_owned(), step.to_owned()))
    }
}
