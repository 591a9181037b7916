//! The guarantees, as ARCHITECTURE.md states them and as texts name them.

use crate::tidy::workspace::tree::Tree;

/// Their numbers.
pub(crate) const GUARANTEES: std::ops::RangeInclusive<usize> = 1..=13;

pub(in crate::tidy) const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// The words of a guarantee, in one line.
pub(crate) fn statement(tree: &Tree, number: usize) -> Option<String> {
    let architecture = tree.markdown.iter().find(|file| file.path == ARCHITECTURE)?;
    let begins = item(number);
    let mut lines = architecture.text.lines().skip_while(|line| !line.starts_with(&begins));
    let first = lines.next()?.trim_start_matches(&begins);
    let behind = lines.take_while(|line| line.starts_with("  "));
    Some(std::iter::once(first).chain(behind).map(str::trim).collect::<Vec<&str>>().join(" "))
}

pub(in crate::tidy) fn item(number: usize) -> String {
    format!("- **G{number}**")
}

/// Whether `text` names a guarantee in words: `G7`.
pub(crate) fn is_named(text: &str, number: usize) -> bool {
    let word = format!("G{number}");
    text.match_indices(&word).any(|(begin, _)| is_word(text, begin, &word, |after| !after.is_alphanumeric()))
}

/// Whether the word that begins there stands alone.
pub(in crate::tidy) fn is_word(text: &str, begin: usize, word: &str, may_follow: fn(char) -> bool) -> bool {
    let before = text[..begin].chars().next_back();
    let after = text[begin + word.len()..].chars().next();
    before.is_none_or(|before| !before.is_alphanumeric() && before != '_') && after.is_none_or(may_follow)
}
