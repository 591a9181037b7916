//! Keys, names and tenants, validated at the edge.
//!
//! A step key is `key:step`, of a compensation `key:step:undo`. It is read from the right, and no step may be called
//! `undo`, so that two different steps never share a key (a property test holds it).

mod external;
mod step;

use std::fmt;
use std::sync::{Arc, LazyLock};

pub(crate) use self::external::external_key;
use self::step::checked_number;
pub use self::step::{StepId, StepKey};

/// The longest key of a saga, in bytes.
pub const KEY_BYTES_MAX: usize = 120;
/// The longest step name, in bytes.
pub const STEP_NAME_BYTES_MAX: usize = 40;
/// The longest external key, in bytes.
const STEP_KEY_BYTES_MAX: usize = 255;
/// The longest tenant or namespace, in bytes.
pub const TENANT_BYTES_MAX: usize = 32;
/// The longest topic that an application publishes to.
const TOPIC_BYTES_MAX: usize = 100;

/// Why a key, a step name, a tenant or a namespace was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} {text:?} {problem}")]
pub struct InvalidName {
    what: &'static str,
    text: String,
    problem: String,
}

impl InvalidName {
    fn new(what: &'static str, text: &str, problem: impl Into<String>) -> Self {
        // An over-long text is cut, so that the sentence stays readable and a log stays small.
        let text = text.chars().take(2 * STEP_NAME_BYTES_MAX).collect();
        Self { what, text, problem: problem.into() }
    }
}

/// The caller's idempotency key of a saga: 1 to 120 bytes of visible ASCII without `>`, unique per tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// Checks the text and makes a key of it.
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

    /// The key that a store wrote down: a user's key, or behind it `>step` for a saga that is a step of another one, and for
    /// a step that is hosted for another service, or is done for an item of a list there or for each event.
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

    /// Checks that the external keys of the saga's steps, and of its sub-sagas, are short enough: `longest` is by how many bytes they
    /// are longer than this key.
    pub(crate) fn check_length_with(&self, longest: usize, tenant: &Tenant) -> Result<(), InvalidName> {
        // The host of a step may have another namespace, of any length.
        let taken = TENANT_BYTES_MAX + 1 + tenant.0.len() + 1 + longest;
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

    /// The key under which a host runs this step, or this item `step#n`, of the saga with this key. It has a `>`, and so it is never
    /// the key of an application.
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

    /// The saga's own key, where this is the key of a hosted step.
    pub(crate) fn asked_for(&self) -> Self {
        match self.0.rsplit_once('>') {
            None => self.clone(),
            Some((key, _)) => Self(key.into()),
        }
    }
}

/// A tenant: up to 32 bytes of `[A-Za-z0-9_.-]`. The default tenant has the empty name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// Checks the text and makes a tenant of it.
    ///
    /// # Errors
    /// Says what is wrong with an empty or over-long text, and with a byte outside `[A-Za-z0-9_.-]`.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        check("tenant", text, TENANT_BYTES_MAX, "ASCII letters, digits, `_`, `.` and `-`", is_name_byte)?;
        Ok(Self(text.into()))
    }

    /// The tenant's name; empty for the default tenant.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the default tenant.
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    /// The tenant that a store wrote down: the empty text is the default tenant.
    ///
    /// # Errors
    /// Those of [`Tenant::new`].
    pub fn from_stored(text: &str) -> Result<Self, InvalidName> {
        if text.is_empty() { Ok(Self::default()) } else { Self::new(text) }
    }
}

impl Default for Tenant {
    fn default() -> Self {
        // Every start of an application without tenants asks for it.
        static DEFAULT: LazyLock<Tenant> = LazyLock::new(|| Tenant("".into()));
        DEFAULT.clone()
    }
}

/// What sets the keys that go to other services apart from those of another service or environment on the same account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Namespace(Arc<str>);

impl Namespace {
    /// Checks the text and makes a namespace of it.
    ///
    /// # Errors
    /// Says what is wrong with an empty or over-long text, and with a byte outside `[A-Za-z0-9_.-]`.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        check("namespace", text, TENANT_BYTES_MAX, "ASCII letters, digits, `_`, `.` and `-`", is_name_byte)?;
        Ok(Self(text.into()))
    }

    /// The namespace's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks a step name: 1 to 40 bytes of `[a-z0-9-]`, and not `undo`.
///
/// # Errors
/// Says what is wrong with the name.
pub fn check_step_name(text: &str) -> Result<(), InvalidName> {
    if text == "undo" {
        return Err(InvalidName::new("step name", text, "is reserved: `key:step:undo` is the key of a compensation"));
    }
    check("step name", text, STEP_NAME_BYTES_MAX, "`[a-z0-9-]`", |byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
    })
}

/// Checks a topic that an application publishes to: 1 to 100 bytes of letters, digits and `_ . -`.
pub(crate) fn check_topic(text: &str) -> Result<(), InvalidName> {
    check("topic", text, TOPIC_BYTES_MAX, "ASCII letters, digits and `_`, `.`, `-`", is_name_byte)
}

macro_rules! display {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}
display!(Key, Tenant, Namespace);

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

fn check(
    what: &'static str,
    text: &str,
    bytes_max: usize,
    allowed: &str,
    is_allowed: impl Fn(u8) -> bool,
) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::new(what, text, format!("is empty; give 1 to {bytes_max} bytes of {allowed}")));
    }
    if text.len() > bytes_max {
        let problem = format!("has {} bytes; at most {bytes_max} are allowed", text.len());
        return Err(InvalidName::new(what, text, problem));
    }
    match text.bytes().position(|byte| !is_allowed(byte)) {
        None => Ok(()),
        Some(at) => {
            let problem = format!("has a character at byte {at} that is not allowed; write {allowed}");
            Err(InvalidName::new(what, text, problem))
        }
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
            prop_assert_eq!(key.hosted(&longest).asked_for(), key);
        }
    }
}
