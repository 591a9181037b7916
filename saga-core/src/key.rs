//! Keys, names and tenants, validated at the edge.
//!
//! A step key is `key:step`, of a compensation `key:step:undo`. It is read from the right, and no step may be called
//! `undo`, so that two different steps never share a key (a property test holds it).

use std::fmt;
use std::sync::Arc;

/// The longest key of a saga, in bytes.
pub const KEY_BYTES_MAX: usize = 120;
/// The longest step name, in bytes.
pub const STEP_NAME_BYTES_MAX: usize = 40;
/// The longest tenant or namespace, in bytes.
pub const TENANT_BYTES_MAX: usize = 32;

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
        Self("".into())
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

/// The part of a step key behind the saga's key: `step`, `step:undo`, or `step:undo#2` for a second undo.
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
        self.split().0
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

/// The idempotency key of a step: `key:step`, or `key:step:undo`. At most 255 bytes, whatever its parts are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StepKey {
    /// The saga's key.
    pub key: Key,
    /// Which step, and whether it is done or undone.
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
        check_step_name(step)?;
        let written = StepId::from_stored(&text[key.len() + 1..]);
        // One key has one text: `#02` and `#1` are nobody's.
        if is_undo && written.undo_round().is_none_or(|round| written != StepId::undoing(step, round)) {
            return Err(InvalidName::new("step key", text, "has an undo that is not numbered `#n` from 2 on"));
        }
        Ok(Self { key: Key::new(key)?, step: written })
    }
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key.0, self.step.0)
    }
}

/// The key that other services see: `key:step`, or `namespace/tenant/key:step` where a namespace is set or the tenant
/// is not the default one.
pub(crate) fn outside_key(namespace: Option<&Namespace>, tenant: &Tenant, key: &Key, step: &StepId) -> String {
    let plain = format_args!("{key}:{step}").to_string();
    match (namespace, tenant.is_default()) {
        (None, true) => plain,
        (Some(namespace), true) => format!("{namespace}/{plain}"),
        (None, false) => format!("/{tenant}/{plain}"),
        (Some(namespace), false) => format!("{namespace}/{tenant}/{plain}"),
    }
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
display!(Key, Tenant, Namespace, StepId);

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
