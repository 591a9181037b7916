//! Texts from outside.

pub(crate) fn at_most(what: &str, bytes: usize, bytes_max: usize) -> Result<(), String> {
    if bytes > bytes_max { Err(format!("{what} has {bytes} bytes; at most {bytes_max} are allowed")) } else { Ok(()) }
}

/// The beginning of a text from outside, so that a sentence stays one.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(60).collect()
}
