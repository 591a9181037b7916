use std::fmt;

use saga_core::store::DeadLetter;
use serde_json::{Value, json};

use crate::plain::{Lines, OneLine, write_line};
use crate::show::utc;

/// A dead letter on one line.
pub(super) struct InLine<'a>(pub(super) &'a DeadLetter);

/// All that is known of a dead letter.
pub(super) struct InFull<'a>(pub(super) &'a DeadLetter);

impl fmt::Display for InLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeadLetter { letter, seen, first_seen_at: buried_at, state, .. } = self.0;
        let (id, reason, state) = (letter.id.0, letter.reason.as_str(), state.as_str());
        let (seen_at, detail) = (utc(*buried_at), &letter.detail);
        write!(f, "{}", OneLine(format_args!("{id:<10} {state:<10} {reason:<16} {seen_at} UTC  seen {seen}  {detail}")))
    }
}

impl fmt::Display for InFull<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeadLetter { letter, seen, first_seen_at: buried_at, state, decided_at, note } = self.0;
        write_line(f, format_args!("{} is {}: {}", letter.id.0, state.as_str(), letter.reason.as_str()))?;
        write_line(f, format_args!("{}", letter.detail))?;
        write_line(f, format_args!("came first {} UTC to {}, seen {seen}", utc(*buried_at), letter.source))?;
        if letter.attempts > 0 {
            write_line(f, format_args!("tried {} times", letter.attempts))?;
        }
        if let (Some(at), Some(note)) = (decided_at, note) {
            write_line(f, format_args!("{} {} UTC: {note}", state.as_str(), utc(*at)))?;
        }
        if letter.message.is_none() {
            write_line(f, format_args!("the message is incomplete and cannot be replayed"))?;
        }
        for (name, text) in &letter.headers {
            write_line(f, format_args!("  {name}: {text}"))?;
        }
        writeln!(f, "\n{}", Lines(String::from_utf8_lossy(&letter.payload)))
    }
}

/// A dead letter for programs. Bytes of the content that are no text are replaced.
pub(super) fn as_json(letter: &DeadLetter) -> Value {
    let DeadLetter { letter, seen, first_seen_at: buried_at, state, decided_at, note } = letter;
    let headers: serde_json::Map<String, Value> =
        letter.headers.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
    json!({
        "id": letter.id.0,
        "state": state.as_str(),
        "reason": letter.reason.as_str(),
        "detail": letter.detail,
        "source": letter.source,
        "tenant": letter.tenant.as_str(),
        "message_id": letter.message.as_ref().map(|message| message.id.to_string()),
        "headers": headers,
        "payload": String::from_utf8_lossy(&letter.payload),
        "attempts": letter.attempts,
        "seen": seen,
        "buried_at": utc(*buried_at),
        "decided_at": decided_at.map(utc),
        "note": note,
    })
}
