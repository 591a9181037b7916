//! What a command or an event asks of a host.

use std::sync::Arc;

use crate::key::Key;
use crate::saga::Definition;
use crate::store::Store;

/// What a message asks for.
pub(crate) struct HostRequest<S: Store> {
    pub(crate) definition: Arc<Definition<S>>,
    /// The key of the hosted step.
    pub(crate) key: Key,
    /// The service that waits for a reply; empty if an event asked for the step.
    pub(crate) reply_to: String,
    /// The id of what asked.
    pub(crate) by: u128,
    /// What an event was made into; nothing where the message itself brings the step's input.
    pub(crate) made: Option<MappedEvent>,
}

/// What an event was made into.
pub(crate) struct MappedEvent {
    /// The step's input.
    pub(crate) input: Vec<u8>,
    /// The hash of the event.
    pub(crate) hash: Vec<u8>,
    /// What earlier steps returned, of those that the step reads.
    pub(crate) earlier: Vec<(String, String)>,
}
