//! A request to run or undo a hosted step, made from a command, an undo or an event.

use std::sync::Arc;

use crate::key::Key;
use crate::saga::Definition;
use crate::store::Store;

/// A request for a hosted step.
pub(crate) struct HostRequest<S: Store> {
    pub(crate) definition: Arc<Definition<S>>,
    /// The key of the hosted step.
    pub(crate) key: Key,
    /// The service that waits for a reply; empty if an event asked for the step.
    pub(crate) reply_to: String,
    /// The id of the message that asks.
    pub(crate) by: u128,
    /// The input that a mapping made from an event; `None` if the message contains the input.
    pub(crate) mapped: Option<MappedEvent>,
}

/// The input that a mapping made from an event.
pub(crate) struct MappedEvent {
    /// The step's input.
    pub(crate) input: Vec<u8>,
    /// The hash of the event.
    pub(crate) hash: Vec<u8>,
    /// The outputs of earlier steps that the step reads, by name.
    pub(crate) earlier: Vec<(String, String)>,
}
