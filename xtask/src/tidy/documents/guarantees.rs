//! Each guarantee stands in ARCHITECTURE.md, and a test names it.

use super::guarantee::{ARCHITECTURE, GUARANTEES, is_named, is_word, item, statement};
use super::guarantee_list::named_tests;
use crate::tidy::finding::Finding;
use crate::tidy::workspace::tree::Tree;

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

/// In ARCHITECTURE.md each guarantee is a list item, `- **G7** ..`, and a test has it in its name.
pub(crate) fn each_is_written_down(tree: &Tree) -> Vec<Finding> {
    if !tree.has(ARCHITECTURE) {
        return Vec::new();
    }
    GUARANTEES.filter_map(|number| complaint(tree, number)).collect()
}

fn complaint(tree: &Tree, number: usize) -> Option<Finding> {
    let complaint = if statement(tree, number).is_none() {
        format!("G{number} is missing: each guarantee begins a list item, `{} ..`", item(number))
    } else if named_tests(tree, number).is_empty() {
        format!("no test is named after G{number}: give one a name such as `g{number}_..`")
    } else {
        return None;
    };
    Some(Finding::error(ARCHITECTURE, 1, complaint))
}

fn names(text: &str, number: usize) -> bool {
    let function = format!("g{number}_");
    is_named(text, number) || text.match_indices(&function).any(|(begin, _)| is_word(text, begin, &function, |_| true))
}

#[cfg(test)]
mod tests {
    use super::{each_has_a_test, each_is_written_down};
    use crate::tidy::workspace::tree::Tree;

    #[test]
    fn a_guarantee_without_a_test_is_found() {
        let all_but_seven =
            "// G1, G2 and G3. G4; G5: G6\nfn g8_x() {}\nfn g9_y() {}\n// G10 G11 G12 G13 G71 xG7 big7_\n";
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
        let found = |statements: &[String], tests: &[String]| -> Vec<String> {
            let files = [("ARCHITECTURE.md", &*statements.join("\n")), ("tests/tests/a.rs", &*tests.concat())];
            each_is_written_down(&Tree::of(&files)).iter().map(ToString::to_string).collect()
        };
        let statements: Vec<String> = (1..=13).map(|number| format!("- **G{number}** It\n  holds.")).collect();
        let tests: Vec<String> = (1..=13).map(|number| format!("fn g{number}_x() {{}}\n")).collect();
        assert_eq!(found(&statements, &tests), [""; 0]);
        assert!(found(&statements[..12], &tests)[0].contains("G13 is missing"));
        assert!(found(&statements, &tests[1..])[0].contains("no test is named after G1:"));
    }
}
