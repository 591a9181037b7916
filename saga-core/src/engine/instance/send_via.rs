//! How a message leaves this process after its commit.

use std::time::Duration;

use crate::store::MessageKind;

/// When the relays may read what is sent from memory.
const RELAYED_AFTER: Duration = Duration::from_secs(5);

/// Who sends the messages of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendVia {
    /// The relays, from the outbox.
    Relay,
    /// This process, from memory. The relays send what did not get through.
    Memory,
}

impl SendVia {
    /// Whether a message of this kind is sent from memory. Events are in an order, which the relays keep.
    pub(crate) fn is_from_memory(self, kind: MessageKind) -> bool {
        self == Self::Memory && kind != MessageKind::Event
    }

    /// After how long the relays may read a message of this kind.
    pub(crate) fn relayed_after(self, kind: MessageKind) -> Duration {
        if self.is_from_memory(kind) { RELAYED_AFTER } else { Duration::ZERO }
    }
}
