//! A dead letter as the routes show it.

use saga_core::store::{DeadLetter, Timestamp};
use serde_json::{Map, Value, json};

/// The letter as a list shows it, without what it contains.
pub(super) fn in_list(letter: &DeadLetter) -> Value {
    let DeadLetter { letter, seen, first_seen_at, state, decided_at, note } = letter;
    let time = |at: Timestamp| at.to_string();
    json!({
        "id": letter.id.0,
        "state": state.as_str(),
        "reason": letter.reason.as_str(),
        "detail": letter.detail,
        "source": letter.source,
        "tenant": letter.tenant.as_str(),
        "message_id": letter.message.as_ref().map(|message| message.id.to_string()),
        "attempts": letter.attempts,
        "seen": seen,
        "buried_at": time(*first_seen_at),
        "decided_at": decided_at.map(time),
        "note": note,
    })
}

/// The letter with its headers and its content. What is no text in the content is replaced.
pub(super) fn in_full(letter: &DeadLetter) -> Value {
    let headers: Map<String, Value> =
        letter.letter.headers.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
    let mut shown = in_list(letter);
    shown["headers"] = Value::Object(headers);
    shown["payload"] = String::from_utf8_lossy(&letter.letter.payload).into();
    shown
}
