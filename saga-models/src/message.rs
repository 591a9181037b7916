use std::cmp::Ordering;

use saga_core::store::Answer;

/// A client that asks a host for a step, and takes it back, without a saga of this model.
pub const STRANGER: usize = 99;
/// The command of the stranger, and its undo.
pub const STRANGERS: [u128; 2] = [9_001, 9_002];

/// A message between two services, as far as the protocol looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    /// Who sent it.
    pub from: usize,
    /// Whom it is for; listeners of events are for themselves.
    pub to: usize,
    /// What it says.
    pub body: Body,
}

/// What a message says.
///
/// A reply has no id of its own here: two that say the same are one message, which is handled as often as it comes. An id
/// only saves the receiver work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Body {
    /// Do the step.
    Command {
        /// The id of the message.
        id: u128,
    },
    /// Undo the step.
    Undo {
        /// The id of the message.
        id: u128,
        /// Whether it is known to be done.
        known: bool,
    },
    /// What became of what was asked.
    Reply {
        /// The id of the message that asked.
        asked: u128,
        /// What became of it.
        said: Said,
    },
    /// Something happened. All events of the model have one ordering key.
    Event {
        /// Its place in commit order.
        position: u64,
    },
}

/// An answer that can be sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Said(pub Answer);

impl Message {
    /// Whether it asks for a step.
    pub fn is_command(&self) -> bool {
        matches!(self.body, Body::Command { .. })
    }

    /// Whether it is an event.
    pub fn is_event(&self) -> bool {
        matches!(self.body, Body::Event { .. })
    }
}

impl Ord for Said {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.as_str().cmp(other.0.as_str())
    }
}

impl PartialOrd for Said {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
