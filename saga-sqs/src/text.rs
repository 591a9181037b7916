//! Texts, and what SQS allows in them.

pub(crate) fn at_most(what: &str, bytes: usize, bytes_max: usize) -> Result<(), String> {
    if bytes > bytes_max { Err(format!("{what} has {bytes} bytes; at most {bytes_max} are allowed")) } else { Ok(()) }
}

/// The beginning of a text from outside, so that a sentence stays one.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Whether SQS and SNS carry the character: those of XML 1.0.
pub(crate) fn is_carried(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_characters_of_xml_are_carried() {
        for char in ['\t', '\n', '\r', ' ', '\u{7f}', '\u{d7ff}', '\u{e000}', '\u{fffd}', '\u{10000}', '\u{10ffff}'] {
            assert!(is_carried(char), "{char:?}");
        }
        for char in ['\0', '\u{8}', '\u{b}', '\u{c}', '\u{e}', '\u{1f}', '\u{fffe}', '\u{ffff}'] {
            assert!(!is_carried(char), "{char:?}");
        }
    }

    #[test]
    fn a_length_is_refused_beyond_its_limit_only() {
        assert_eq!(at_most("it", 5, 5), Ok(()));
        assert_eq!(at_most("it", 6, 5), Err("it has 6 bytes; at most 5 are allowed".to_owned()));
    }
}
