//! Whether bytes decode as the type of a step.

use crate::unwind::caught;

/// Whether bytes decode. What reads them is the user's code: a panic in it concerns this message only.
pub(crate) fn check_value(check: fn(&[u8]) -> Result<(), String>, bytes: &[u8]) -> Result<(), String> {
    caught(|| check(bytes)).unwrap_or_else(|panic| Err(format!("reading it panicked: {panic}")))
}
