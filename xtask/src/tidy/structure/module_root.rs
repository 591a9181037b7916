//! A `mod.rs` is documentation, a list of modules and re-exports, so that it reads as a table of contents.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::source::Source;
use crate::tidy::workspace::tokens::{Token, closing, end_of_item};

/// One finding a file: the first item that belongs elsewhere, and how many more there are.
pub(crate) fn only_lists(source: &Source) -> Vec<Finding> {
    if source.name() != "mod.rs" {
        return Vec::new();
    }
    let tokens = &source.tokens;
    let mut strangers = Vec::new();
    let mut at = behind_attributes(tokens, 0);
    while let Some(first) = tokens.get(at) {
        let end = end_of_item(tokens, at);
        let item = &tokens[at..end.min(tokens.len())];
        strangers.extend(complaint(item).map(|complaint| (first.line, complaint)));
        at = behind_attributes(tokens, item_end_of_use(tokens, at, end));
    }
    let count = strangers.len();
    let more = if count > 1 { format!("; {} more items do too", count - 1) } else { String::new() };
    let first = strangers.into_iter().next();
    first.map(|(line, complaint)| Finding::error(&source.path, line, complaint + &more)).into_iter().collect()
}

/// What is wrong with an item, if anything is.
fn complaint(item: &[Token]) -> Option<String> {
    let mut words = item.iter().map(|token| token.text.as_str()).skip_while(|word| *word == "pub");
    let mut first = words.next()?;
    if first == "(" {
        // The scope of `pub(crate)`.
        let rest: Vec<&str> = words.by_ref().skip_while(|word| *word != ")").take(2).collect();
        first = rest.get(1).copied()?;
    }
    match first {
        "mod" if item.iter().any(|token| token.text == "{") => {
            Some("a module with a body in a mod.rs; give it a file of its own".to_owned())
        }
        "use" | "mod" => None,
        other => Some(format!(
            "a mod.rs holds documentation, `mod` and `use` only, and `{other}` belongs in a file of its own"
        )),
    }
}

fn behind_attributes(tokens: &[Token], mut at: usize) -> usize {
    while tokens.get(at).is_some_and(|token| token.text == "#") {
        let open = if tokens.get(at + 1).is_some_and(|token| token.text == "!") { at + 2 } else { at + 1 };
        at = closing(tokens, open) + 1;
    }
    at
}

/// The braces of `use a::{b, c};` are no body: its end is the semicolon behind them.
fn item_end_of_use(tokens: &[Token], begin: usize, end: usize) -> usize {
    let is_use = tokens[begin..end.min(tokens.len())].iter().any(|token| token.text == "use");
    if is_use && tokens.get(end).is_some_and(|token| token.text == ";") { end + 1 } else { end }
}

#[cfg(test)]
mod tests {
    use super::only_lists;
    use crate::tidy::workspace::source::snippet;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        only_lists(&snippet(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn lists_pass() {
        let good =
            "//! Docs.\n\n#[cfg(test)]\nmod tests;\nmod a;\npub mod b;\npub(crate) use a::{A, B};\npub use b::C;\n";
        assert_eq!(lines("x/mod.rs", good), [0; 0]);
    }

    #[test]
    fn items_are_found() {
        assert_eq!(lines("x/mod.rs", "mod a;\nfn f() {}\npub use a::{B};\npub(crate) struct C;\n"), [2]);
        assert_eq!(lines("x/mod.rs", "mod a;\npub use a::{B};\npub(crate) struct C;\n"), [3]);
        assert_eq!(lines("x/mod.rs", "mod a {\n  pub struct B;\n}\n"), [1]);
        assert_eq!(lines("x/other.rs", "fn f() {}\n"), [0; 0]);
    }
}
