//! Text from outside, such as the error of a partner, made safe for a terminal.

use std::fmt::{self, Write as _};

/// A text on one line: control characters are escaped, line breaks included, so that it neither controls the terminal nor
/// looks like another line.
pub(crate) struct OneLine<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { f, keeps_lines: false }, "{}", self.0)
    }
}

/// A text of any number of lines: all control characters but line breaks are escaped.
pub(crate) struct Lines<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for Lines<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { f, keeps_lines: true }, "{}", self.0)
    }
}

/// Writes one line and its end, with the line made safe.
pub(crate) fn write_line(f: &mut fmt::Formatter<'_>, line: fmt::Arguments<'_>) -> fmt::Result {
    writeln!(f, "{}", OneLine(line))
}

/// Escapes what is written through it.
struct Escaping<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    keeps_lines: bool,
}

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut plain = 0;
        for (at, letter) in text.char_indices().filter(|(_, letter)| is_obeyed(*letter)) {
            if letter == '\n' && self.keeps_lines {
                continue;
            }
            self.f.write_str(&text[plain..at])?;
            write!(self.f, "{}", letter.escape_default())?;
            plain = at + letter.len_utf8();
        }
        self.f.write_str(&text[plain..])
    }
}

/// Whether a terminal obeys this character instead of showing it: C0 and C1 controls, line and paragraph separators, and
/// those that change the direction of the text.
fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(Lines("a\u{1b}[2Jb\r\nc\u{9b}").to_string(), "a\\u{1b}[2Jb\\r\nc\\u{9b}");
        assert_eq!(OneLine("a\u{1b}]0;b\u{7}\nc").to_string(), "a\\u{1b}]0;b\\u{7}\\nc");
        assert_eq!(OneLine("a\u{202e}b\u{2028}c\u{2066}").to_string(), "a\\u{202e}b\\u{2028}c\\u{2066}");
        assert_eq!(OneLine(format_args!("{:<4}{}", "\u{e9}", "\\n")).to_string(), "\u{e9}   \\n");
    }
}
