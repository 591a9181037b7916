//! What a name may consist of, and why one was refused.

/// The longest key of a saga, in bytes.
pub const KEY_BYTES_MAX: usize = 120;
/// The longest step name, in bytes.
pub const STEP_NAME_BYTES_MAX: usize = 40;
/// The longest external key, in bytes.
pub(super) const STEP_KEY_BYTES_MAX: usize = 255;
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
    pub(super) fn new(what: &'static str, text: &str, problem: impl Into<String>) -> Self {
        // An over-long text is cut, so that the sentence stays readable and a log stays small.
        let text = text.chars().take(2 * STEP_NAME_BYTES_MAX).collect();
        Self { what, text, problem: problem.into() }
    }
}

/// Checks a step name: 1 to 40 bytes of `[a-z0-9-]`, and not `undo`.
///
/// # Errors
/// Says what is wrong with the name.
pub(crate) fn check_step_name(text: &str) -> Result<(), InvalidName> {
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

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

pub(super) fn check(
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
