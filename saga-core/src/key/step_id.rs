//! The ids of steps: which step of a saga, for which item, done or undone.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::name::InvalidName;

/// The part of a step key behind the saga's key: `step`, `step:undo`, or `step:undo#2` for a second undo. Of the third
/// item of a list that a step is done for it is `step#3`, `step#3:undo`, and so on; the list itself is kept under `step#0`.
/// A step that is done for each event has that event's number there, which is 2^63 at least.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(Arc<str>);

impl StepId {
    /// The id of doing a step.
    pub fn doing(step: &str) -> Self {
        Self(step.into())
    }

    /// The id of undoing a step for the `round`th time, counted from 1.
    pub fn undoing(step: &str, round: u32) -> Self {
        if round <= 1 { Self(format!("{step}:undo").into()) } else { Self(format!("{step}:undo#{round}").into()) }
    }

    /// The id of doing a step for the item of that number, counted from 1. The list itself has the number 0.
    pub fn of_item(step: &str, item: u32) -> Self {
        Self(format!("{step}#{item}").into())
    }

    /// The id of undoing what this is the doing of, for the `round`th time, counted from 1.
    #[must_use]
    pub fn undone(&self, round: u32) -> Self {
        Self::undoing(self.as_str(), round)
    }

    /// The same with the number of an item or of an event behind the step's name.
    pub(super) fn numbered(&self, number: &str) -> Self {
        match self.0.split_once(':') {
            None => Self(format!("{}#{number}", self.0).into()),
            Some((name, undo)) => Self(format!("{name}#{number}:{undo}").into()),
        }
    }

    /// What stands in the place of a step's id where a row is about the saga's deadline: no step has it.
    pub fn of_deadline() -> Self {
        Self(":deadline".into())
    }

    /// The id that a store wrote down.
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The step's name.
    pub fn step(&self) -> &str {
        split_item(self.split().0).0
    }

    /// Which item of a list it is done for, counted from 1; 0 for the list itself, and nothing where there is no list.
    pub fn item(&self) -> Option<u32> {
        split_item(self.split().0).1
    }

    /// The step's name, and the item where it is done for one.
    pub fn step_and_item(&self) -> &str {
        self.split().0
    }

    /// What is called: the same for all items of a list.
    pub fn function(&self) -> Cow<'_, str> {
        match (self.item(), self.undo_round()) {
            (None, _) => Cow::Borrowed(self.as_str()),
            (Some(_), None) => Cow::Borrowed(self.step()),
            (Some(_), Some(_)) => Cow::Owned(format!("{}:undo", self.step())),
        }
    }

    /// Which undo this is, counted from 1; nothing when it is the step itself.
    pub fn undo_round(&self) -> Option<u32> {
        self.split().1
    }

    fn split(&self) -> (&str, Option<u32>) {
        let Some((step, tail)) = self.0.rsplit_once(':') else {
            return (&self.0, None);
        };
        match tail.strip_prefix("undo") {
            Some("") => (step, Some(1)),
            Some(round) => (step, round.strip_prefix('#').and_then(|digits| digits.parse().ok())),
            None => (&self.0, None),
        }
    }
}

/// A step's name, and the number of an item behind it.
pub(super) fn split_item(text: &str) -> (&str, Option<u32>) {
    match text.rsplit_once('#') {
        Some((step, digits)) => (step, digits.parse().ok()),
        None => (text, None),
    }
}

/// A step's name without the number of an item or an event behind it. One number has one text: `#02` is refused.
pub(super) fn checked_number<'a>(what: &'static str, text: &'a str) -> Result<&'a str, InvalidName> {
    let Some((step, digits)) = text.rsplit_once('#') else { return Ok(text) };
    match digits.parse::<u64>() {
        Ok(number) if number.to_string() == digits => Ok(step),
        _ => Err(InvalidName::new(what, text, "has an item or an event that is not numbered `#n`")),
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
