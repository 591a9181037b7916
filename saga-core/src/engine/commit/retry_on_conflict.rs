//! Deciding again when another decision about the same saga was committed first.

use std::ops::ControlFlow;

/// How often a decision about a saga that moves all the time is made again at once.
pub(crate) const CONFLICTS_MAX: usize = 8;

/// Decides and commits, again after each conflict; `None` after `attempts_max` conflicts.
///
/// `attempt` reads the saga, decides and commits. It breaks with its result, and continues where the commit met another
/// decision.
pub(crate) async fn retry_on_conflict<T, E, F>(
    attempts_max: usize,
    mut attempt: impl FnMut() -> F,
) -> Result<Option<T>, E>
where
    F: Future<Output = Result<ControlFlow<T>, E>>,
{
    for _ in 0..attempts_max {
        if let ControlFlow::Break(done) = attempt().await? {
            return Ok(Some(done));
        }
    }
    Ok(None)
}

/// Whether there is nothing left to decide, as a result of an attempt.
pub(crate) fn ends(is_done: bool) -> ControlFlow<()> {
    if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
