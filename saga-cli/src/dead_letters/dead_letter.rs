use std::fmt;

use saga_core::store::DeadLetter;
use serde_json::{Value, json};

use crate::show::utc;

/// A dead letter on one line.
pub(super) struct InLine<'a>(pub(super) &'a DeadLetter);

/// All that is known of a dead letter.
pub(super) struct InFull<'a>(pub(super) &'a DeadLetter);

impl fmt::Display for InLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeadLetter { letter, seen, first_seen_at: buried_at, state, .. } = self.0;
        let (id, reason, state) = (letter.id.0, letter.reason.as_str(), state.as_str());
        let detail = Plain(&letter.detail);
        writeln!(f, "{id:<10} {state:<10} {reason:<16} {} UTC  seen {seen}  {detail}", utc(*buried_at))
    }
}

impl fmt::Display for InFull<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeadLetter { letter, seen, first_seen_at: buried_at, state, decided_at, note } = self.0;
        writeln!(f, "{} is {}: {}", letter.id.0, state.as_str(), letter.reason.as_str())?;
        writeln!(f, "{}", Plain(&letter.detail))?;
        writeln!(f, "came first {} UTC to {}, seen {seen}", utc(*buried_at), Plain(&letter.source))?;
        if letter.attempts > 0 {
            writeln!(f, "tried {} times", letter.attempts)?;
        }
        if let (Some(at), Some(note)) = (decided_at, note) {
            writeln!(f, "{} {} UTC: {}", state.as_str(), utc(*at), Plain(note))?;
        }
        if letter.message.is_none() {
            writeln!(f, "it is no whole message, so that it cannot be replayed")?;
        }
        for (name, text) in &letter.headers {
            writeln!(f, "  {}: {}", Plain(name), Plain(text))?;
        }
        writeln!(f, "\n{}", Plain(&String::from_utf8_lossy(&letter.payload)))
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

/// A text from outside, with the control characters escaped that a terminal would obey.
struct Plain<'a>(&'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            if letter.is_control() && letter != '\n' {
                write!(f, "{}", letter.escape_default())?;
            } else {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_from_outside_are_escaped() {
        assert_eq!(Plain("a\u{1b}[2Jb\r\nc\u{9b}").to_string(), "a\\u{1b}[2Jb\\r\nc\\u{9b}");
    }
}
