//! The machine decides and does nothing else: no async, no clock, no randomness, no I/O.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::source::Source;

/// A word, and what it brings in.
const IMPURE: [(&str, &str); 18] = [
    ("async", "async code"),
    ("await", "async code"),
    ("tokio", "a runtime"),
    ("async_trait", "async code"),
    ("Instant", "a clock"),
    ("SystemTime", "a clock"),
    ("Environment", "a clock and randomness"),
    ("rand", "randomness"),
    ("fastrand", "randomness"),
    ("getrandom", "randomness"),
    ("new_v4", "randomness"),
    ("now_v7", "a clock and randomness"),
    ("HashMap", "an order that differs from run to run (take a BTreeMap)"),
    ("HashSet", "an order that differs from run to run (take a BTreeSet)"),
    ("spawn", "threads or tasks"),
    ("Mutex", "shared state"),
    ("println", "output"),
    ("eprintln", "output"),
];

const IMPURE_MODULES: [&str; 4] = ["fs", "net", "thread", "process"];

pub(crate) fn machine_is_pure(source: &Source) -> Vec<Finding> {
    if !source.is_in("saga-core/src/machine/") {
        return Vec::new();
    }
    let tokens = &source.shipped;
    let mut findings = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let word = token.text.as_str();
        let brings = IMPURE.iter().find(|(impure, _)| *impure == word).map(|(_, brings)| *brings);
        let std_module = at >= 3 && tokens[at - 3].text == "std" && IMPURE_MODULES.contains(&word);
        if let Some(brings) = brings.or(std_module.then_some("I/O")) {
            let message = format!(
                "`{word}` in the machine brings in {brings}: it is state and event to state and commands, nothing else"
            );
            findings.push(Finding::error(&source.path, token.line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::machine_is_pure;
    use crate::tidy::workspace::source::snippet;

    #[test]
    fn impure_code_in_the_machine_is_found() {
        let lines = |path, text| -> Vec<usize> {
            machine_is_pure(&snippet(path, text)).iter().map(|finding| finding.line).collect()
        };
        let impure = [
            "async fn f() {}",
            "fn f() { g().await }",
            "use std::time::Instant;",
            "fn f() -> u64 { rand::random() }",
            "fn f() { std::fs::read(\"x\"); }",
            "fn f() -> Uuid { Uuid::new_v4() }",
            "use std::collections::HashMap;",
        ];
        for text in impure {
            assert_eq!(lines("saga-core/src/machine/a.rs", text).first(), Some(&1), "{text}");
            assert_eq!(lines("saga-core/src/engine/a.rs", text), [0; 0], "{text}");
        }
        assert_eq!(lines("saga-core/src/machine/a.rs", "/// Never async.\nfn f(now: u64) -> u64 { now }\n"), [0; 0]);
        assert_eq!(
            lines("saga-core/src/machine/a.rs", "#[cfg(test)]\nmod tests { use std::collections::HashSet; }\n"),
            [0; 0]
        );
    }
}
