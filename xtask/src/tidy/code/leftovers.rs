//! What may stand in a working copy and not in the project: unfinished code, skipped tests, tests that sleep.

use std::ops::Range;

use crate::tidy::finding::Finding;
use crate::tidy::workspace::source::Source;
use crate::tidy::workspace::tokens::{Token, closing, find, without_tests};

pub(crate) fn nothing_unfinished(source: &Source) -> Vec<Finding> {
    let tokens = &source.tokens;
    let quoted = quoted(tokens);
    let mut findings = Vec::new();
    for name in ["todo", "unimplemented", "dbg"] {
        for at in find(tokens, &[name, "!"]).filter(|at| !is_within(&quoted, *at)) {
            let message = format!("`{name}!` is for a working copy; write what belongs there");
            findings.push(Finding::error(&source.path, tokens[at].line, message));
        }
    }
    findings
}

pub(crate) fn no_test_is_ignored(source: &Source) -> Vec<Finding> {
    let message = "an ignored test proves nothing; make it run, or delete it";
    let hits = find(&source.tokens, &["#", "[", "ignore"]);
    hits.map(|at| Finding::error(&source.path, source.tokens[at].line, message)).collect()
}

/// A test that sleeps is slow where it passes and fails where the machine is slow. In a loop that asks again and again
/// for what another process does, a pause is none of that.
pub(crate) fn no_test_sleeps(source: &Source) -> Vec<Finding> {
    let message = "a test that sleeps; wait for the event itself, ask for it in a loop, or use the simulation's time";
    let mut lines = sleeps(&source.tokens);
    if !source.is_for_tests() && !source.is_in("saga-testkit/") {
        for shipped in sleeps(&without_tests(&source.tokens)) {
            lines.retain(|line| *line != shipped);
        }
    }
    lines.into_iter().map(|line| Finding::error(&source.path, line, message)).collect()
}

/// The lines that sleep outside of a loop that asks.
fn sleeps(tokens: &[Token]) -> Vec<usize> {
    let asking: Vec<Range<usize>> = find(tokens, &["while"]).map(|at| body(tokens, at)).collect();
    let sleeping = find(tokens, &["thread", ":", ":", "sleep"]).filter(|at| !is_within(&asking, *at));
    sleeping.map(|at| tokens[at].line).collect()
}

/// What a macro generates is no code of ours until somebody uses it.
fn quoted(tokens: &[Token]) -> Vec<Range<usize>> {
    let macros = ["quote", "quote_spanned", "parse_quote"];
    let uses =
        macros.iter().flat_map(|name| find(tokens, &["!"]).filter(|at| *at > 0 && tokens[at - 1].text == **name));
    uses.map(|at| at + 1..closing(tokens, at + 1)).collect()
}

/// The braces behind the keyword at `at`.
fn body(tokens: &[Token], at: usize) -> Range<usize> {
    let open = (at..tokens.len()).find(|&open| tokens[open].text == "{").unwrap_or(at);
    open..closing(tokens, open)
}

fn is_within(ranges: &[Range<usize>], at: usize) -> bool {
    ranges.iter().any(|range| range.contains(&at))
}

#[cfg(test)]
mod tests {
    use super::{no_test_is_ignored, no_test_sleeps, nothing_unfinished};
    use crate::tidy::workspace::source::snippet;

    #[test]
    fn unfinished_code_is_found() {
        for name in ["todo", "unimplemented", "dbg"] {
            let source = snippet("a/src/a.rs", &format!("// {name}!()\nfn f() {{ {name}!(1) }}\n"));
            let lines: Vec<usize> = nothing_unfinished(&source).iter().map(|finding| finding.line).collect();
            assert_eq!(lines, [2], "{name}");
        }
        assert_eq!(nothing_unfinished(&snippet("a/src/a.rs", "fn f() { quote! { unimplemented!() }; }\n")), []);
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
        assert_eq!(lines("a/src/a.rs", sleeps), [0; 0]);
        assert_eq!(lines("a/tests/b.rs", "fn f() { while !done() { std::thread::sleep(t) } }\n"), [0; 0]);
        assert_eq!(lines("a/tests/b.rs", "fn f() { while !done() { g() } std::thread::sleep(t) }\n"), [1]);
        assert_eq!(lines("a/src/a.rs", &format!("{sleeps}#[cfg(test)]\nmod tests {{\n  {sleeps}}}\n")), [4]);
    }
}
