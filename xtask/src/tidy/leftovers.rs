//! What may stand in a working copy and not in the project: unfinished code, skipped tests, tests that sleep.

use super::finding::Finding;
use super::source::Source;
use super::tokens::{Token, find, without_tests};

pub(crate) fn nothing_unfinished(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in ["todo", "unimplemented", "dbg"] {
        for at in find(&source.tokens, &[name, "!"]) {
            let message = format!("`{name}!` is for a working copy; write what belongs there");
            findings.push(Finding::error(&source.path, source.tokens[at].line, message));
        }
    }
    findings
}

pub(crate) fn no_test_is_ignored(source: &Source) -> Vec<Finding> {
    let message = "an ignored test proves nothing; make it run, or delete it";
    let hits = find(&source.tokens, &["#", "[", "ignore"]);
    hits.map(|at| Finding::error(&source.path, source.tokens[at].line, message)).collect()
}

/// A test that sleeps is slow where it passes and fails where the machine is slow.
pub(crate) fn no_test_sleeps(source: &Source) -> Vec<Finding> {
    let message = "a test that sleeps; wait for the event itself, or use the simulation's time";
    let sleeps = |tokens: &[Token]| -> Vec<usize> {
        find(tokens, &["thread", ":", ":", "sleep"]).map(|at| tokens[at].line).collect()
    };
    let mut lines = sleeps(&source.tokens);
    if !source.is_for_tests() && !source.is_in("saga-testkit/") {
        for shipped in sleeps(&without_tests(&source.tokens)) {
            lines.retain(|line| *line != shipped);
        }
    }
    lines.into_iter().map(|line| Finding::error(&source.path, line, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::{no_test_is_ignored, no_test_sleeps, nothing_unfinished};
    use crate::tidy::source::snippet;

    #[test]
    fn unfinished_code_is_found() {
        for name in ["todo", "unimplemented", "dbg"] {
            let source = snippet("a/src/a.rs", &format!("// {name}!()\nfn f() {{ {name}!(1) }}\n"));
            let lines: Vec<usize> = nothing_unfinished(&source).iter().map(|finding| finding.line).collect();
            assert_eq!(lines, [2], "{name}");
        }
        assert_eq!(nothing_unfinished(&snippet("a/src/a.rs", "fn todo(dbg: bool) -> bool { !dbg }\n")), []);
    }

    #[test]
    fn ignored_tests_are_found() {
        let found = |text| no_test_is_ignored(&snippet("tests/tests/a.rs", text)).len();
        assert_eq!(found("#[test]\n#[ignore]\nfn f() {}\n"), 1);
        assert_eq!(found("#[test]\n#[ignore = \"slow\"]\nfn f() {}\n"), 1);
        assert_eq!(found("#[test]\nfn ignore() {}\n"), 0);
    }

    #[test]
    fn sleeping_tests_are_found() {
        let lines = |path, text| -> Vec<usize> {
            no_test_sleeps(&snippet(path, text)).iter().map(|finding| finding.line).collect()
        };
        let sleeps = "fn f() { std::thread::sleep(t) }\n";
        assert_eq!(lines("tests/tests/a.rs", sleeps), [1]);
        assert_eq!(lines("a/tests/b.rs", sleeps), [1]);
        assert_eq!(lines("saga-testkit/src/a.rs", sleeps), [1]);
        assert_eq!(lines("a/src/a.rs", sleeps), []);
        assert_eq!(lines("a/src/a.rs", &format!("{sleeps}#[cfg(test)]\nmod tests {{\n  {sleeps}}}\n")), [4]);
    }
}
