//! Each file of a crate is a module of it: what no `mod` names is never compiled.

use std::collections::BTreeSet;

use crate::tidy::finding::Finding;
use crate::tidy::workspace::modules::Crates;
use crate::tidy::workspace::tree::Tree;

pub(crate) const RULE: &str = "never_compiled";

pub(crate) fn no_file_is(tree: &Tree, crates: &Crates<'_>) -> Vec<Finding> {
    let compiled: BTreeSet<&str> =
        crates.0.iter().flat_map(|one| one.modules.iter().map(|module| module.file)).collect();
    let sources = tree.sources.iter().filter(|source| !source.is_for_tests());
    let lost = sources.filter(|source| {
        let one = crates.around(&source.path);
        one.is_some_and(|one| !one.is_for_tests(&source.path)) && !compiled.contains(source.path.as_str())
    });
    let message = "no `mod` names this file, so it is never compiled; delete it, or declare it";
    lost.map(|source| Finding::of_rule(RULE, &source.path, 1, "file", message)).collect()
}

#[cfg(test)]
mod tests {
    use super::no_file_is;
    use crate::tidy::workspace::modules::Crates;
    use crate::tidy::workspace::tree::Tree;

    #[test]
    fn files_without_a_mod_are_found() {
        let tree = Tree::of(&[
            ("a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod cases;\n"),
            ("a/src/main.rs", "mod d;\n"),
            ("a/src/b.rs", "// mod c;\n"),
            ("a/src/c.rs", ""),
            ("a/src/d.rs", ""),
            ("a/src/cases.rs", "mod one;\n"),
            ("a/src/cases/one.rs", ""),
            ("a/src/bin/e.rs", ""),
            ("a/tests/f.rs", ""),
            ("a/build.rs", ""),
        ]);
        let told = no_file_is(&tree, &Crates::of(&tree));
        let paths: Vec<&str> = told.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["a/src/c.rs"]);
    }
}
