//! The glossary has each term once.

use std::collections::BTreeMap;

use crate::tidy::finding::Finding;
use crate::tidy::workspace::tree::Tree;

const GLOSSARY: &str = "docs/glossary.md";

pub(crate) fn has_each_term_once(tree: &Tree) -> Vec<Finding> {
    let Some(glossary) = tree.markdown.iter().find(|file| file.path == GLOSSARY) else { return Vec::new() };
    let mut known = BTreeMap::new();
    let mut findings = Vec::new();
    for (line, text) in (1..).zip(glossary.text.lines()) {
        let Some(cell) = text.strip_prefix("| ").and_then(|row| row.split(" |").next()) else { continue };
        for term in cell.split(", ").filter(|term| *term != "term") {
            if let Some(first) = known.insert(term, line) {
                let message = format!("`{term}` is explained in line {first} already");
                findings.push(Finding::error(GLOSSARY, line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::has_each_term_once;
    use crate::tidy::workspace::tree::Tree;

    #[test]
    fn a_term_that_is_explained_twice_is_found() {
        let found = |rows: &str| has_each_term_once(&Tree::of(&[("docs/glossary.md", rows)])).len();
        assert_eq!(
            found("| term | meaning |\n|---|---|\n| claim | x |\n\n| term | meaning |\n|---|---|\n| lease | x |\n"),
            0
        );
        assert_eq!(found("| claim | x |\n| lease, claim | x |\n"), 1);
    }
}
