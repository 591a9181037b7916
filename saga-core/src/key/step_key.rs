//! The keys of steps, as other services see them.

use std::fmt;

use super::key::Key;
use super::name::{InvalidName, check_step_name};
use super::step_id::{StepId, checked_number, split_item};

/// The idempotency key of a step: `key:step`, or `key:step:undo`. It has at most 255 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StepKey {
    /// The saga's key.
    pub key: Key,
    /// The step, and whether it is done or undone.
    pub step: StepId,
}

impl StepKey {
    /// Reads a step key from the right.
    ///
    /// # Errors
    /// Says what is wrong with a text that no step key has.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let missing = || InvalidName::new("step key", text, "has no `:step` at its end");
        let (head, tail) = text.rsplit_once(':').ok_or_else(missing)?;
        let is_undo = tail == "undo" || tail.starts_with("undo#");
        let (key, step) = if is_undo { head.rsplit_once(':').ok_or_else(missing)? } else { (head, tail) };
        check_step_name(split_item(step).0)?;
        checked_number("step key", step)
            .map_err(|_| InvalidName::new("step key", text, "has an item or an event that is not numbered `#n`"))?;
        let written = StepId::from_stored(&text[key.len() + 1..]);
        // One key has one text: `#02` and `#1` are refused.
        if is_undo && written.undo_round().is_none_or(|round| written != StepId::undoing(step, round)) {
            return Err(InvalidName::new("step key", text, "has an undo that is not numbered `#n` from 2 on"));
        }
        Ok(Self { key: Key::from_stored(key)?, step: written })
    }
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, self.step)
    }
}
