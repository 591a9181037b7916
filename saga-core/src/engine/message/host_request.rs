//! A request to run or undo a hosted step, made from a command, an undo or an event.

use std::sync::Arc;

use crate::key::Key;
use crate::saga::Definition;
use crate::store::{Message, Store};

/// A request for a hosted step.
pub(crate) struct HostRequest<S: Store> {
    pub(crate) definition: Arc<Definition<S>>,
    /// The key of the hosted step.
    pub(crate) key: Key,
    /// The service that waits for a reply; empty if an event asked for the step.
    pub(crate) reply_to: String,
    /// The id of the message that asks.
    pub(crate) by: u128,
    /// What the step reads beside its input, as JSON: of a command the semantic locks that it carries, of an event the outputs of
    /// earlier steps. By their names.
    pub(crate) earlier: Vec<(String, String)>,
    /// The input that a mapping made from an event; `None` if the message contains the input.
    pub(crate) mapped: Option<MappedEvent>,
}

impl<S: Store> HostRequest<S> {
    /// A request by a command or an undo, for the step of this key.
    pub(crate) fn of_message(
        definition: &Arc<Definition<S>>,
        key: Key,
        message: &Message,
        earlier: Vec<(String, String)>,
    ) -> Self {
        let reply_to = message.headers.reply_to.clone().unwrap_or_default();
        let by = message.id.0.as_u128();
        Self { definition: Arc::clone(definition), key, reply_to, by, earlier, mapped: None }
    }

    /// A request by the event of this id.
    pub(crate) fn of_event(definition: &Arc<Definition<S>>, key: Key, by: u128, mapped: MappedEvent) -> Self {
        let (definition, reply_to) = (Arc::clone(definition), String::new());
        Self { definition, key, reply_to, by, earlier: Vec::new(), mapped: Some(mapped) }
    }
}

/// The input that a mapping made from an event.
pub(crate) struct MappedEvent {
    /// The step's input.
    pub(crate) input: Vec<u8>,
    /// The hash of the event.
    pub(crate) hash: Vec<u8>,
}
