//! Checks that bytes decode as the type of a step.

use crate::unwind::caught;

/// Checks that bytes decode. The decoder is the user's code: its panic is an error of this message only.
pub(crate) fn check_value(check: fn(&[u8]) -> Result<(), String>, bytes: &[u8]) -> Result<(), String> {
    caught(|| check(bytes)).unwrap_or_else(|panic| Err(format!("reading it panicked: {panic}")))
}
