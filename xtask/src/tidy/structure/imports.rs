//! The directions of dependencies: the core knows no backend, and the contracts know no engine.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::source::Source;

const BACKENDS: [&str; 4] = ["sqlx", "lapin", "rusqlite", "redis"];

/// What the engine builds on. None of it may reach back.
const BELOW_THE_ENGINE: [&str; 3] = ["saga-core/src/store/", "saga-core/src/transport/", "saga-core/src/machine/"];

pub(crate) fn no_backend_in_core(source: &Source) -> Vec<Finding> {
    if !source.is_in("saga-core/") {
        return Vec::new();
    }
    let named = source.tokens.iter().filter(|token| BACKENDS.contains(&token.text.as_str()));
    named
        .map(|token| {
            let message =
                format!("`{}` in saga-core: the core names no backend, it owns traits and plain values", token.text);
            Finding::error(&source.path, token.line, message)
        })
        .collect()
}

pub(crate) fn no_engine_below_it(source: &Source) -> Vec<Finding> {
    let Some(folder) = BELOW_THE_ENGINE.iter().find(|folder| source.is_in(folder)) else {
        return Vec::new();
    };
    let tokens = &source.tokens;
    let mut findings = Vec::new();
    let mut in_use = false;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "use" => in_use = true,
            ";" => in_use = false,
            "engine" => {
                let beside_path =
                    |at: Option<usize>| at.and_then(|at| tokens.get(at)).is_some_and(|token| token.text == ":");
                if in_use
                    || beside_path(at.checked_sub(1)) && beside_path(at.checked_sub(2))
                    || tokens_are_path(tokens, at)
                {
                    let message =
                        format!("`engine` in {folder}: the engine stands on it, so it imports nothing of the engine");
                    findings.push(Finding::error(&source.path, token.line, message));
                }
            }
            _ => {}
        }
    }
    findings
}

/// Whether `::` follows the token at `at`.
fn tokens_are_path(tokens: &[crate::tidy::workspace::tokens::Token], at: usize) -> bool {
    crate::tidy::workspace::tokens::starts_with(&tokens[at + 1..], &[":", ":"])
}

#[cfg(test)]
mod tests {
    use super::{no_backend_in_core, no_engine_below_it};
    use crate::tidy::workspace::source::snippet;

    #[test]
    fn a_backend_in_the_core_is_found() {
        let lines = |path, text| -> Vec<usize> {
            no_backend_in_core(&snippet(path, text)).iter().map(|finding| finding.line).collect()
        };
        assert_eq!(
            lines("saga-core/src/a.rs", "//! Not sqlx.\nuse rusqlite::Connection;\nfn f(c: &lapin::Channel) {}\n"),
            [2, 3]
        );
        assert_eq!(lines("saga-core/src/a.rs", "// redis\nfn f() -> &'static str { \"sqlx\" }\n"), [0; 0]);
        assert_eq!(lines("saga-sqlite/src/a.rs", "use rusqlite::Connection;\n"), [0; 0]);
    }

    #[test]
    fn the_engine_below_itself_is_found() {
        let lines = |path: &str, text: &str| -> Vec<usize> {
            no_engine_below_it(&snippet(path, text)).iter().map(|finding| finding.line).collect()
        };
        for folder in ["store", "transport", "machine"] {
            let path = format!("saga-core/src/{folder}/a.rs");
            assert_eq!(lines(&path, "use crate::engine::Runtime;\n"), [1]);
            assert_eq!(lines(&path, "use crate::{engine as e, key};\n"), [1]);
            assert_eq!(lines(&path, "fn f(r: crate::engine::Runtime) {}\n"), [1]);
            assert_eq!(lines(&path, "/// What the engine calls.\nfn f(engine: u32) -> u32 { engine }\n"), [0; 0]);
        }
        assert_eq!(lines("saga-core/src/memory/a.rs", "use crate::engine::Runtime;\n"), [0; 0]);
    }
}
