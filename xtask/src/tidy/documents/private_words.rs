//! Comments, errors and logs name the actor: "the relay", "another process", and never somebody.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::modules::Crates;
use crate::tidy::workspace::prose::{Word, texts};
use crate::tidy::workspace::source::Source;
use crate::tidy::workspace::tree::Tree;

pub(crate) const RULE: &str = "private_words";

/// What is not written, each word by word, whatever the case.
const PHRASES: [&str; 8] = ["whoever", "nobody", "somebody", "what came", "turns round", "turned round", "he", "his"];

/// One finding for each place in a comment or a string that ships, in the crates `saga-..`.
pub(crate) fn are_not_used(tree: &Tree, crates: &Crates<'_>) -> Vec<Finding> {
    let asked = tree.sources.iter().filter(|source| {
        let one = crates.around(&source.path).filter(|one| one.folder.starts_with("saga-"));
        one.is_some_and(|one| !source.is_for_tests() && !one.is_for_tests(&source.path))
    });
    asked.flat_map(check).collect()
}

fn check(source: &Source) -> Vec<Finding> {
    let syntax = source.syntax();
    let mut findings = Vec::new();
    for text in texts(&source.text) {
        for phrase in PHRASES {
            let lines = places(&text, phrase).filter(|line| !syntax.is_for_tests(*line));
            findings.extend(lines.map(|line| {
                let message = format!("\"{phrase}\" in a comment or a string; name the actor and say what it does");
                Finding::of_rule(RULE, &source.path, line, phrase, message)
            }));
        }
    }
    findings
}

/// The lines where the phrase begins.
fn places<'a>(text: &'a [Word], phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    let length = phrase.split(' ').count();
    let is_phrase = move |words: &&[Word]| phrase.split(' ').eq(words.iter().map(|word| word.text.as_str()));
    text.windows(length).filter(is_phrase).map(|words| words[0].line)
}

#[cfg(test)]
mod tests {
    use super::are_not_used;
    use crate::tidy::workspace::modules::Crates;
    use crate::tidy::workspace::tree::Tree;

    fn lines_of(path: &str, text: &str) -> Vec<usize> {
        let roots = ["saga-core/src/lib.rs", "examples/order-saga/src/lib.rs"];
        let lib = "mod a;\n#[cfg(test)]\nmod cases;\n";
        let tree = Tree::of(&[(roots[0], lib), (roots[1], lib), (path, text)]);
        are_not_used(&tree, &Crates::of(&tree)).iter().map(|finding| finding.line).collect()
    }

    fn lines(text: &str) -> Vec<usize> {
        lines_of("saga-core/src/a.rs", text)
    }

    #[test]
    fn private_words_are_found() {
        assert_eq!(
            lines("//! Whoever waits.\n\n/// Nobody's row: what\n/// came is no message.\nfn f() {}\n"),
            [1, 3, 3]
        );
        assert_eq!(lines("fn f() {\n  // He takes his share, and the saga turned round.\n}\n"), [2, 2, 2]);
        assert_eq!(lines("fn f() -> &'static str { \"somebody else\" }\n"), [1]);
        assert_eq!(lines("fn f() {}\n/* It turns\n round. */\n"), [2]);
    }

    #[test]
    fn near_misses_pass() {
        assert_eq!(
            lines("//! The share, this history, whatever came, a round turn, the header. what\nfn he(his: u8) {}\n"),
            [0; 0]
        );
        assert_eq!(lines("/// What\nfn f() {}\n/// came.\nfn g() {}\n"), [0; 0]);
        assert_eq!(lines("#[cfg(test)]\nmod tests {\n  // Nobody.\n}\n"), [0; 0]);
        for path in [
            "saga-core/tests/a.rs",
            "examples/order-saga/src/a.rs",
            "saga-core/src/a/tests.rs",
            "saga-core/src/cases.rs",
        ] {
            assert_eq!(lines_of(path, "// Nobody.\n"), [0; 0], "{path}");
        }
    }
}
