//! What the state keeps of steps that are hosted for another service, and of those that another service hosts.

use serde::{Deserialize, Serialize};

use crate::store::WorkId;

/// Who asked for a saga that is a hosted step, or a step that an event asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The service that waits for a reply; empty where an event asked, since an event has no reply.
    #[serde(rename = "r")]
    pub reply_to: String,
    /// The id of the command, or of the event, that asked for it; nothing where its undo arrived first.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub command: Option<u128>,
    /// The id of the message that asks to undo it.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<u128>,
    /// The trace context of the message that asked for it.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The outputs of earlier steps that the step reads: their names, and their outputs as JSON.
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<(String, String)>,
}

/// A command that was sent to another service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sent {
    /// The id of its message, which the reply names.
    #[serde(rename = "m")]
    pub message: u128,
    /// The work row that waits for the reply; 0 where there is none, or where it is not known. See [`Sent::row`].
    #[serde(rename = "w", default)]
    pub work: i64,
    /// The checksum of the input that a mapping gave it; 0 where none did, or where that is not known.
    #[serde(rename = "h", default, skip_serializing_if = "is_zero")]
    pub given: u64,
}

impl Sent {
    /// A command of whose message only the id is known.
    pub(in crate::machine) const fn without_row(message: u128) -> Self {
        Self { message, work: 0, given: 0 }
    }

    /// The work row that waits for the reply.
    pub fn row(&self) -> Option<WorkId> {
        (self.work != 0).then_some(WorkId(self.work))
    }

    /// The same command when its outcome is recorded: no row waits for the reply, and the record has the input. The id of
    /// the message stays known, since a late success counts.
    pub(in crate::machine) const fn settled(self) -> Self {
        Self { work: 0, given: 0, ..self }
    }
}

// Serde hands the field by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
