//! What the machine's state keeps for steps that are done for, or by, another service.

use serde::{Deserialize, Serialize};

/// Who asked for a saga, where it is a step that is hosted for another service, or was asked for by an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The service that waits for a reply; empty where an event asked, since nobody does.
    #[serde(rename = "r")]
    pub reply_to: String,
    /// The id of the command, or of the event, that asked for it; none where its undo came first.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub command: Option<u128>,
    /// The id of the undo that takes it back.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<u128>,
    /// The trace context of what asked for it.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What earlier steps returned, of those that the step reads: their names, and their outputs as JSON.
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<(String, String)>,
}

/// A command that was sent to another service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sent {
    /// The id of its message: what its reply names.
    #[serde(rename = "m")]
    pub message: u128,
    /// The work row that waits for the reply; 0 where it is not known.
    #[serde(rename = "w", default)]
    pub work: i64,
    /// The checksum of the input that a mapping gave it; 0 where none did, or where that is not known.
    #[serde(rename = "h", default, skip_serializing_if = "is_zero")]
    pub given: u64,
}

// Serde hands the field by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
