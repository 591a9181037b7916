//! The answer of a service to the orchestrator, as an event with a name.

use std::fmt;

use saga_core::store::Answer;
use saga_core::transport::{Message, MessageKind};
use serde_json::Value;

/// What a service tells the orchestrator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceEvent {
    pub service: String,
    pub name: &'static str,
    /// What the step returned, or why it failed.
    pub detail: String,
}

impl ServiceEvent {
    /// The event that a message is; nothing, unless it is a reply.
    pub fn of(message: &Message) -> Option<Self> {
        let answer = message.headers.answer.filter(|_| message.kind == MessageKind::Reply)?;
        let service = message.headers.reply_to.clone().unwrap_or_default();
        let name = name_of(&message.event_type, answer);
        Some(Self { service, name, detail: detail_of(&message.payload) })
    }
}

fn name_of(step: &str, answer: Answer) -> &'static str {
    match (step, answer) {
        ("create-booking", Answer::Done) => "BookingCreated",
        ("create-booking", _) => "BookingFailed",
        ("create-booking:undo", Answer::Undone) => "BookingCancelled",
        ("process-payment", Answer::Done) => "PaymentProcessed",
        ("process-payment", _) => "PaymentFailed",
        ("send-notification", Answer::Done) => "NotificationSent",
        ("send-notification", _) => "NotificationFailed",
        _ => "Unknown",
    }
}

/// An output of ours is a string or nothing, and a reason has a message.
fn detail_of(payload: &[u8]) -> String {
    let value = serde_json::from_slice::<Value>(payload).unwrap_or_default();
    let text = value.get("message").unwrap_or(&value).as_str();
    text.unwrap_or_default().to_owned()
}

impl fmt::Display for ServiceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, name, detail } = self;
        let colon = if detail.is_empty() { "" } else { ": " };
        write!(f, "{service:<13} {name}{colon}{detail}")
    }
}
