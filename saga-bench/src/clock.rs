//! The only place here that reads a clock.

use std::time::{Duration, Instant};

/// What `body` returned, and how long it took.
pub(crate) fn timed<T>(body: impl FnOnce() -> T) -> (T, Duration) {
    let begun = now();
    let value = body();
    (value, begun.elapsed())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}
