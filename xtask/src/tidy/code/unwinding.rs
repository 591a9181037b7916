//! What makes a task of the engine panic by the way: a sum of durations that is too long, a subscriber of the log.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::source::Source;
use crate::tidy::workspace::tokens::find;

/// The macros of `tracing`; `log.rs` has their shielded twins.
const EVENTS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];

pub(crate) fn no_moment_overflows(source: &Source) -> Vec<Finding> {
    if !source.is_in("saga-core/src/engine/") {
        return Vec::new();
    }
    let message =
        "a sum with a moment, which panics where a duration of a user is too long; write `now.saturating_add(..)`";
    let tokens = &source.shipped;
    let called = find(tokens, &["now", "(", ")", "+"]).map(|at| at + 3);
    let held = find(tokens, &["now", "+"]).chain(find(tokens, &["began", "+"])).map(|at| at + 1);
    called.chain(held).map(|at| Finding::error(&source.path, tokens[at].line, message)).collect()
}

pub(crate) fn no_event_panics(source: &Source) -> Vec<Finding> {
    if !source.is_in("saga-core/src/") || source.is_in("saga-core/src/log.rs") {
        return Vec::new();
    }
    let message = "an event of `tracing` may panic with its subscriber; tell it by `crate::log`, which is shielded";
    let tokens = &source.shipped;
    let events = EVENTS.iter().flat_map(|event| {
        let told = find(tokens, &["tracing", ":", ":"]);
        told.filter(move |at| tokens.get(at + 3).is_some_and(|token| token.text == *event))
    });
    events.map(|at| Finding::error(&source.path, tokens[at].line, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::{no_event_panics, no_moment_overflows};
    use crate::tidy::workspace::source::snippet;

    #[test]
    fn sums_that_overflow_are_found() {
        let found = |path, text| no_moment_overflows(&snippet(path, text)).len();
        for text in ["fn f() { self.env.now() + ttl }", "fn f() { now + ttl }", "fn f() { began + ttl }"] {
            assert_eq!(found("saga-core/src/engine/a.rs", text), 1, "{text}");
            assert_eq!(found("saga-core/src/memory/a.rs", text), 0, "{text}");
        }
        assert_eq!(found("saga-core/src/engine/a.rs", "fn f() { env.now().saturating_add(ttl) }"), 0);
    }

    #[test]
    fn unshielded_events_are_found() {
        let found = |path, text| no_event_panics(&snippet(path, text)).len();
        assert_eq!(found("saga-core/src/engine/a.rs", "fn f() { tracing::warn!(\"x\") }"), 1);
        assert_eq!(found("saga-core/src/engine/a.rs", "fn f() { log::warn!(\"x\") }"), 0);
        assert_eq!(found("saga-core/src/log.rs", "fn f() { tracing::warn!(\"x\") }"), 0);
    }
}
