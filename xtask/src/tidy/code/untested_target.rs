//! A target with `test = false` has no unit tests: they would never run, and no run would tell.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::source::Source;
use crate::tidy::workspace::tokens::closing;
use crate::tidy::workspace::tree::{TextFile, Tree};

pub(crate) fn has_no_tests(tree: &Tree) -> Vec<Finding> {
    tree.manifests.iter().flat_map(|manifest| check(tree, manifest)).collect()
}

fn check(tree: &Tree, manifest: &TextFile) -> Vec<Finding> {
    let folder = manifest.path.trim_end_matches("Cargo.toml");
    let library = format!("{folder}src/lib.rs");
    let mut findings = Vec::new();
    for target in untested(&manifest.text) {
        let file = format!("{folder}{}", target.unwrap_or("src/lib.rs"));
        // What a program declares beside the library of its crate is one file; otherwise all of the folder is its own.
        let is_alone = file != library && tree.has(&library);
        let is_of_target =
            |path: &str| if is_alone { path == file } else { path.starts_with(&format!("{folder}src/")) };
        let tested = tree.sources.iter().filter(|source| is_of_target(&source.path));
        findings.extend(tested.filter_map(|source| first_test(source).map(|line| told(&source.path, line, manifest))));
    }
    findings
}

fn told(path: &str, line: usize, manifest: &TextFile) -> Finding {
    let message = format!("this test never runs: {} says `test = false`; remove that line", manifest.path);
    Finding::error(path, line, message)
}

/// The paths of the programs with `test = false`; nothing in the place of a path is the library.
fn untested(manifest: &str) -> Vec<Option<&str>> {
    let mut found = Vec::new();
    let (mut is_target, mut path) = (false, None);
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            (is_target, path) = (line == "[lib]" || line == "[[bin]]", None);
        } else if let Some(named) = line.strip_prefix("path = \"") {
            path = Some(named.trim_end_matches('"'));
        } else if is_target && line == "test = false" {
            found.push(path);
        }
    }
    found
}

/// The line of the first attribute that names `test`: `#[test]`, `#[tokio::test]`, `#[cfg(test)]`.
fn first_test(source: &Source) -> Option<usize> {
    let tokens = &source.tokens;
    let opens = |at: &usize| tokens[*at].text == "#" && tokens.get(at + 1).is_some_and(|token| token.text == "[");
    let mut attributes = (0..tokens.len()).filter(opens);
    let test =
        attributes.find(|at| tokens[at + 1..closing(tokens, at + 1)].iter().any(|token| token.text == "test"))?;
    Some(tokens[test].line)
}

#[cfg(test)]
mod tests {
    use super::has_no_tests;
    use crate::tidy::workspace::tree::Tree;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        has_no_tests(&Tree::of(files)).into_iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }

    #[test]
    fn tests_that_never_run_are_found() {
        let library = "[lib]\ntest = false\n";
        let tested = "fn f() {}\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(
            found(&[("a/Cargo.toml", library), ("a/src/lib.rs", "fn f() {}\n"), ("a/src/b.rs", tested)]),
            ["a/src/b.rs:2"]
        );
        assert_eq!(found(&[("a/Cargo.toml", "[lib]\n"), ("a/src/lib.rs", tested)]), [""; 0]);
    }

    #[test]
    fn a_program_beside_a_library_is_one_file() {
        let manifest = "[[bin]]\nname = \"a\"\npath = \"src/main.rs\"\ntest = false\n";
        let of = |main, other| {
            found(&[("a/Cargo.toml", manifest), ("a/src/lib.rs", ""), ("a/src/main.rs", main), ("a/src/b.rs", other)])
        };
        let tested = "#[tokio::test]\nasync fn t() {}\n";
        assert_eq!(of("fn main() {}\n", tested), [""; 0]);
        assert_eq!(of(tested, ""), ["a/src/main.rs:1"]);
        assert_eq!(
            found(&[("a/Cargo.toml", manifest), ("a/src/main.rs", ""), ("a/src/b.rs", tested)]),
            ["a/src/b.rs:1"]
        );
    }
}
