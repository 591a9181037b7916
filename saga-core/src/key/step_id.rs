//! The ids of steps: the step, its item, and whether it is done or undone.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::name::InvalidName;

/// The part of a step key after the saga's key: `step`, `step:undo`, or `step:undo#2` for a second undo. For the third item of
/// a list it is `step#3`, `step#3:undo`, and so on; the list itself is stored under `step#0`. A step that runs once per event
/// has a number that is derived from the event, at least 2^63.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(Arc<str>);

impl StepId {
    /// The id of a step.
    pub fn doing(step: &str) -> Self {
        Self(step.into())
    }

    /// The id of the `round`th undo of a step, counted from 1.
    pub fn undoing(step: &str, round: u32) -> Self {
        if round <= 1 { Self(format!("{step}:undo").into()) } else { Self(format!("{step}:undo#{round}").into()) }
    }

    /// The id of a step for an item of a list, counted from 1. The list itself has the number 0.
    pub fn of_item(step: &str, item: u32) -> Self {
        Self(format!("{step}#{item}").into())
    }

    /// The id of the `round`th undo of this step, counted from 1.
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

    /// The id in the row of a saga's deadline. No step has it.
    pub fn of_deadline() -> Self {
        Self(":deadline".into())
    }

    /// Reads a stored id.
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

    /// The item of the list, counted from 1; 0 for the list itself; `None` if the step has no list.
    pub fn item(&self) -> Option<u32> {
        split_item(self.split().0).1
    }

    /// The step's name, with the item if there is one.
    pub fn step_and_item(&self) -> &str {
        self.split().0
    }

    /// The name of the function: the same for all items of a list.
    pub fn function(&self) -> Cow<'_, str> {
        match (self.item(), self.undo_round()) {
            (None, _) => Cow::Borrowed(self.as_str()),
            (Some(_), None) => Cow::Borrowed(self.step()),
            (Some(_), Some(_)) => Cow::Owned(format!("{}:undo", self.step())),
        }
    }

    /// The number of the undo, counted from 1; `None` for the step itself.
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

impl Serialize for StepId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
