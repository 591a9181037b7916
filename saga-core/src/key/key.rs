//! The keys of sagas.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::name::{InvalidName, KEY_BYTES_MAX, STEP_KEY_BYTES_MAX, TENANT_BYTES_MAX, check, check_step_name};
use super::step_id::{StepId, checked_number};
use super::tenant::Tenant;

/// The caller's idempotency key of a saga: 1 to 120 bytes of visible ASCII without `>`, unique in its tenant over all
/// definitions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// Makes a key of a text.
    ///
    /// # Errors
    /// Says what is wrong with an empty or over-long text, and with a byte that is not visible ASCII or is `>`.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        check("key", text, KEY_BYTES_MAX, "visible ASCII without `>`", |byte| byte.is_ascii_graphic() && byte != b'>')?;
        Ok(Self(text.into()))
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a stored key: a user's key, followed by `>step` for a sub-saga or a hosted step, or by `>step#n` for an item of a
    /// list or an event.
    ///
    /// # Errors
    /// Those of [`Key::new`], of each part.
    pub fn from_stored(text: &str) -> Result<Self, InvalidName> {
        let mut parts = text.split('>');
        let own = Self::new(parts.next().unwrap_or_default())?;
        for step in parts {
            check_step_name(checked_number("key", step)?)?;
        }
        Ok(if own.0.len() == text.len() { own } else { Self(text.into()) })
    }

    /// The key of a saga as a message names it: its own, or behind that `>step` where it is a step of another one. It is short
    /// enough to have a hosted step behind it.
    pub(crate) fn from_message(text: &str) -> Result<Self, InvalidName> {
        if text.len() > STEP_KEY_BYTES_MAX {
            let problem = format!("has {} bytes; at most {STEP_KEY_BYTES_MAX} are allowed", text.len());
            return Err(InvalidName::new("key", text, problem));
        }
        Self::from_stored(text)
    }

    /// Checks that the external keys of the saga's steps, and of its sub-sagas, are short enough: `longest` is by how many
    /// bytes they are longer than this key.
    pub(crate) fn check_length_with(&self, longest: usize, tenant: &Tenant) -> Result<(), InvalidName> {
        // The service that hosts a step has a namespace of its own.
        let taken = TENANT_BYTES_MAX + 1 + tenant.as_str().len() + 1 + longest;
        let (bytes, max) = (self.0.len(), STEP_KEY_BYTES_MAX.saturating_sub(taken));
        if bytes <= max {
            return Ok(());
        }
        let problem = format!(
            "has {bytes} bytes; at most {max} are allowed, since steps of the sagas that are steps of this one have theirs \
             behind it, and a key is {STEP_KEY_BYTES_MAX} bytes long at most"
        );
        Err(InvalidName::new("key", &self.0, problem))
    }

    /// The key's text, shared.
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The key of a row that belongs to no saga.
    pub(crate) fn none() -> Self {
        Self("".into())
    }

    /// The key under which this step of the saga of this key is hosted, or this item `step#n` of one. No saga has it
    /// as its own key, which has no `>`.
    pub(crate) fn hosted(&self, step: &str) -> Self {
        Self(format!("{}>{step}", self.0).into())
    }

    /// The key under which this step of the saga of this key is done for one event.
    pub(crate) fn hosted_for_event(&self, step: &str, number: u64) -> Self {
        Self(format!("{}>{step}#{number}", self.0).into())
    }

    /// The id of this step as others see it: where it is done for an item of a list, or for each event, it has the number
    /// of that item or event.
    pub(crate) fn numbered(&self, step: StepId) -> StepId {
        let number = self.0.rsplit_once('>').and_then(|(_, hosted)| hosted.rsplit_once('#'));
        let Some((_, number)) = number else { return step };
        step.numbered(number)
    }

    /// The key of the saga that this is a step of, and the step, where it is the key of one.
    pub(crate) fn of_step(&self) -> Option<(Self, &str)> {
        let (key, step) = self.0.rsplit_once('>')?;
        Some((Self(key.into()), step))
    }

    /// Whether this is the key of a sub-saga, or of a step, of the saga of that key.
    pub(crate) fn is_below(&self, outer: &Self) -> bool {
        self.0.strip_prefix(&*outer.0).is_some_and(|rest| rest.starts_with('>'))
    }

    /// The key of the outermost saga, where this is the key of a sub-saga.
    pub(crate) fn outermost(&self) -> Self {
        match self.0.split_once('>') {
            None => self.clone(),
            Some((key, _)) => Self(key.into()),
        }
    }

    /// The saga's own key, where this is the key of a hosted step.
    pub(crate) fn asked_for(&self) -> Self {
        match self.0.rsplit_once('>') {
            None => self.clone(),
            Some((key, _)) => Self(key.into()),
        }
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Key, STEP_KEY_BYTES_MAX};

    proptest! {
        /// G8: whatever key a message names, what is kept under it can be read again.
        #[test]
        fn g8_a_key_that_a_message_names_can_be_kept(text in "[ab>#1]{1,12}|[a>]{250,260}|a(>[a-z]{40}){5,7}") {
            let Ok(key) = Key::from_message(&text) else { return Ok(()) };
            prop_assert!(text.len() <= STEP_KEY_BYTES_MAX);
            let longest = "s".repeat(40);
            for kept in [key.clone(), key.hosted(&longest), key.hosted_for_event(&longest, u64::MAX)] {
                prop_assert_eq!(Key::from_stored(kept.as_str()), Ok(kept));
            }
            prop_assert!(key.hosted("a").hosted("b").is_below(&key) && !key.is_below(&key));
            prop_assert_eq!(key.hosted(&longest).asked_for(), key);
        }
    }
}
