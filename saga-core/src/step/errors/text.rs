//! How long a text of an error may be that is stored.

/// The longest text of an error, in bytes. It stands in the state of its saga, which is written with each step, and in a
/// line of the history for each attempt; whole answers of other services do not belong there.
pub(crate) const TEXT_BYTES_MAX: usize = 4 * 1_024;

/// The text, cut between two characters where it is too long; then its end says that it was cut, and how long it was.
pub(crate) fn limited(mut text: String) -> String {
    let bytes = text.len();
    if bytes <= TEXT_BYTES_MAX {
        return text;
    }
    let note = format!(" .. (cut here; it had {bytes} bytes)");
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX - note.len()));
    text.push_str(&note);
    // What was cut off is not kept in memory either.
    text.shrink_to_fit();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_within_the_limit_stays_as_it_is() {
        for text in ["", "sold out", &"a".repeat(TEXT_BYTES_MAX)] {
            assert_eq!(limited(text.to_owned()), text);
        }
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters_and_says_so() {
        for character in ["a", "\u{e9}", "\u{20ac}", "\u{1f980}"] {
            for before in ["", "b", "bb", "bbb"] {
                let text = format!("{before}{}", character.repeat(7_000));
                let cut = limited(text.clone());
                assert!(cut.len() <= TEXT_BYTES_MAX && cut.len() > TEXT_BYTES_MAX - 4, "{} bytes", cut.len());
                let (kept, note) = cut.split_once(" .. ").unwrap();
                assert!(text.starts_with(kept), "{kept}");
                assert_eq!(note, format!("(cut here; it had {} bytes)", text.len()));
                assert_eq!(limited(cut.clone()), cut, "cut once");
            }
        }
    }
}
