//! Keys, names and tenants, validated at the edge.
//!
//! A step key is `key:step`, of a compensation `key:step:undo`. It is read from the right, and no step may be called
//! `undo`, so that two different steps never share a key (a property test holds it).

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// The longest key of a saga, in bytes.
pub const KEY_BYTES_MAX: usize = 120;
/// The longest step name, in bytes.
pub const STEP_NAME_BYTES_MAX: usize = 40;
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

    /// The key that a store wrote down: a user's key, or that of a step that is hosted for another service, or is done
    /// for an item of a list there or for each event.
    ///
    /// # Errors
    /// Those of [`Key::new`], of either part.
    pub fn from_stored(text: &str) -> Result<Self, InvalidName> {
        match text.split_once('>') {
            None => Self::new(text),
            Some((key, step)) => {
                check_step_name(checked_number("key", step)?)?;
                Ok(Self::new(key)?.hosted(step))
            }
        }
    }

    /// The key's text, shared.
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The key of a row that belongs to no saga.
    pub(crate) fn none() -> Self {
        Self("".into())
    }

    /// The key under which this step of the saga of this key is hosted, or this item `step#n` of one. It is nobody's own
    /// key, which has no `>`.
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
        let number = self.0.split_once('>').and_then(|(_, hosted)| hosted.rsplit_once('#'));
        let Some((_, number)) = number else { return step };
        match step.0.split_once(':') {
            None => StepId(format!("{}#{number}", step.0).into()),
            Some((name, undo)) => StepId(format!("{name}#{number}:{undo}").into()),
        }
    }

    /// The key of the saga that this is a step of, and the step, where it is the key of one.
    pub(crate) fn of_step(&self) -> Option<(Self, &str)> {
        let (key, step) = self.0.split_once('>')?;
        Some((Self(key.into()), step))
    }

    /// The saga's own key, where this is the key of a hosted step.
    pub(crate) fn asked_for(&self) -> Self {
        match self.0.split_once('>') {
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
fn split_item(text: &str) -> (&str, Option<u32>) {
    match text.rsplit_once('#') {
        Some((step, digits)) => (step, digits.parse().ok()),
        None => (text, None),
    }
}

/// A step's name without the number of an item or an event behind it. One number has one text: `#02` is nobody's.
fn checked_number<'a>(what: &'static str, text: &'a str) -> Result<&'a str, InvalidName> {
    let Some((step, digits)) = text.rsplit_once('#') else { return Ok(text) };
    match digits.parse::<u64>() {
        Ok(number) if number.to_string() == digits => Ok(step),
        _ => Err(InvalidName::new(what, text, "has an item or an event that is not numbered `#n`")),
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
        check_step_name(split_item(step).0)?;
        checked_number("step key", step)
            .map_err(|_| InvalidName::new("step key", text, "has an item or an event that is not numbered `#n`"))?;
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
/// is not the default one. The default tenant is left out there, unless the key has a `/` and would look like one of
/// another tenant.
pub(crate) fn outside_key(namespace: Option<&Namespace>, tenant: &Tenant, key: &Key, step: &StepId) -> String {
    let is_clear = match namespace {
        None => !key.0.starts_with('/'),
        Some(_) => !key.0.contains('/'),
    };
    match namespace {
        None if tenant.is_default() && is_clear => format!("{key}:{step}"),
        Some(namespace) if tenant.is_default() && is_clear => format!("{namespace}/{key}:{step}"),
        _ => format!("{}/{tenant}/{key}:{step}", namespace.map_or("", Namespace::as_str)),
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Key, Namespace, StepId, Tenant, outside_key};

    fn whose() -> impl Strategy<Value = (String, String)> {
        ("[ab]{0,2}", prop_oneof!["[ab/:]{1,6}", "/?[ab]{1,2}/[ab]{1,2}"])
    }

    fn shown(namespace: Option<&Namespace>, (tenant, key): &(String, String)) -> String {
        let tenant = Tenant::from_stored(tenant).expect("a legal tenant");
        outside_key(namespace, &tenant, &Key::new(key).expect("a legal key"), &StepId::doing("step"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        /// G12: no two tenants of a service share a key outside, whatever their sagas' keys are.
        #[test]
        fn g12_an_outside_key_is_injective(namespace in prop::option::of("[ab]"), a in whose(), b in whose()) {
            let namespace = namespace.map(|text| Namespace::new(text).expect("a legal namespace"));
            prop_assert_eq!(a == b, shown(namespace.as_ref(), &a) == shown(namespace.as_ref(), &b));
        }
    }

    #[test]
    fn an_outside_key_is_as_short_as_can_be() {
        let shop = Namespace::new("shop").expect("a legal namespace");
        let check = |namespace, tenant: &str, key: &str, expected: &str| {
            assert_eq!(shown(namespace, &(tenant.to_owned(), key.to_owned())), expected);
        };
        check(None, "", "7", "7:step");
        check(None, "", "orders/7", "orders/7:step");
        check(None, "acme", "7", "/acme/7:step");
        check(None, "", "/acme/7", "///acme/7:step");
        check(Some(&shop), "", "7", "shop/7:step");
        check(Some(&shop), "acme", "7", "shop/acme/7:step");
        check(Some(&shop), "", "acme/7", "shop//acme/7:step");
    }
}
