//! Each guarantee stands in ARCHITECTURE.md and is a test that names it.

use super::finding::Finding;
use super::markdown::links;
use super::tree::Tree;

const GUARANTEES: std::ops::RangeInclusive<usize> = 1..=12;

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// A test file names a guarantee by a function such as `g7_a_lost_claim_cannot_decide`, or in words: `G7`.
pub(crate) fn each_has_a_test(tree: &Tree) -> Vec<Finding> {
    if !tree.has("tests") {
        return Vec::new();
    }
    let missing = GUARANTEES.filter(|number| {
        let test_files = tree.sources.iter().filter(|source| source.is_for_tests());
        !test_files.into_iter().any(|source| names(&source.text, *number))
    });
    let message = |number| format!("no test file names G{number}; a guarantee is a test that names it");
    missing.map(|number| Finding::error("tests", 1, message(number))).collect()
}

/// In ARCHITECTURE.md each guarantee is a list item, `- **G7** ..`, that links to a test.
pub(crate) fn each_is_written_down(tree: &Tree) -> Vec<Finding> {
    let Some(architecture) = tree.markdown.iter().find(|file| file.path == ARCHITECTURE) else { return Vec::new() };
    GUARANTEES.filter_map(|number| complaint(&architecture.text, number)).collect()
}

fn complaint(architecture: &str, number: usize) -> Option<Finding> {
    let begins = format!("- **G{number}**");
    let Some(at) = architecture.lines().position(|line| line.starts_with(&begins)) else {
        let message = format!("G{number} is missing: each guarantee begins a list item, `{begins} ..`");
        return Some(Finding::error(ARCHITECTURE, 1, message));
    };
    let behind = architecture.lines().skip(at + 1).take_while(|line| line.starts_with("  "));
    let item: Vec<&str> = architecture.lines().skip(at).take(1).chain(behind).collect();
    let name = format!("`g{number}_");
    let names_a_test =
        links(&item.join("\n")).iter().any(|link| link.text.starts_with(&name) && link.target.contains(".rs"));
    let message = format!("G{number} names no test: end it with a link such as [`g{number}_..`](tests/tests/file.rs)");
    (!names_a_test).then(|| Finding::error(ARCHITECTURE, at + 1, message))
}

fn names(text: &str, number: usize) -> bool {
    let is_word = |begin: usize, word: &str, may_follow: fn(char) -> bool| {
        let before = text[..begin].chars().next_back();
        let after = text[begin + word.len()..].chars().next();
        before.is_none_or(|before| !before.is_alphanumeric() && before != '_') && after.is_none_or(may_follow)
    };
    let function = format!("g{number}_");
    let word = format!("G{number}");
    text.match_indices(&function).any(|(begin, _)| is_word(begin, &function, |_| true))
        || text.match_indices(&word).any(|(begin, _)| is_word(begin, &word, |after| !after.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::{each_has_a_test, each_is_written_down};
    use crate::tidy::tree::Tree;

    #[test]
    fn a_guarantee_without_a_test_is_found() {
        let all_but_seven = "// G1, G2 and G3. G4; G5: G6\nfn g8_x() {}\nfn g9_y() {}\n// G10 G11 G12 G71 xG7 big7_\n";
        let missing = each_has_a_test(&Tree::of(&[("tests/tests/a.rs", all_but_seven)]));
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(missing[0].message.contains("G7"));
        let shipped = Tree::of(&[("tests/tests/a.rs", all_but_seven), ("saga-core/src/a.rs", "// G7\n")]);
        assert_eq!(each_has_a_test(&shipped).len(), 1, "what ships is no test");
        let all = Tree::of(&[("tests/tests/a.rs", all_but_seven), ("saga-sqlite/tests/a.rs", "fn g7_z() {}\n")]);
        assert_eq!(each_has_a_test(&all), []);
    }

    #[test]
    fn a_guarantee_that_is_not_written_down_is_found() {
        let item = |number: usize| format!("- **G{number}** It\n  holds. [`g{number}_x`](tests/tests/a.rs)");
        let found = |items: &[String]| -> Vec<String> {
            let findings = each_is_written_down(&Tree::of(&[("ARCHITECTURE.md", &items.join("\n"))]));
            findings.into_iter().map(|finding| finding.to_string()).collect()
        };
        let mut items: Vec<String> = (1..=12).map(item).collect();
        assert_eq!(found(&items), [""; 0]);
        items[6] = "- **G7** It\n  holds.".to_owned();
        assert!(found(&items)[0].starts_with("error: ARCHITECTURE.md:13: G7 names no test"), "{:?}", found(&items));
        items[6] = item(8).replace("**G8**", "**G7**");
        assert!(found(&items)[0].contains("G7 names no test"), "{:?}", found(&items));
        items.pop();
        assert!(found(&items)[1].contains("G12 is missing"), "{:?}", found(&items));
    }
}
