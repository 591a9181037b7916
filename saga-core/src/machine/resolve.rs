//! What an external step may have done is asked for, where it says how, before it is called again or undone.
//!
//! An attempt of such a step, once it may have taken effect, begins by asking. Only when the other side says that it did
//! not is it called, in the same attempt. Its calls are limited by the policy of the step; the asking goes on for so many
//! attempts more as the policy of the resolution allows. Before the last of them lies the settle time, in which a call
//! that is still on its way lands or never does: so only the last one can say that it certainly never happened.

use std::time::Duration;

use super::attempt::{Attempt, Next, RETRY_AGE_MAX, failure, only_forward};
use super::event::Event;
use super::shape::Side;
use super::state::{Failure, FailureKind};
use crate::step::{Rejection, RetryPolicy};

/// How an unknown outcome is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Resolving<'a> {
    /// The policy of asking: how many attempts it may take beyond those of the step, and how long lies in between.
    pub policy: &'a RetryPolicy,
    /// After so long no call that was made is still on its way.
    pub settle_time: Duration,
    /// Whether the saga goes back, so that nothing of it is called any more.
    pub turned_round: bool,
    /// Whether a call may still be on its way that an owner made just before it vanished.
    pub is_fresh: bool,
}

impl Attempt<'_> {
    /// Whether this is the last attempt, and what the other side says in it is certain only when the settle time has
    /// passed once more: an owner vanished, and nobody knows when.
    pub fn must_settle(&self) -> bool {
        self.resolving.is_some_and(|resolving| {
            resolving.is_fresh && self.attempts >= attempts_max(self.policy, Some(resolving.policy))
        })
    }

    /// Whether the step is called in this attempt, where the other side says that it did not happen so far.
    pub fn may_call(&self) -> bool {
        let turned_round = self.resolving.is_some_and(|resolving| resolving.turned_round);
        !turned_round && (self.attempts <= self.policy.attempts || self.is_young(true))
    }

    /// Whether what can only go forward is tried still.
    fn is_young(&self, maybe: bool) -> bool {
        only_forward(self, maybe) && self.retrying_for < RETRY_AGE_MAX
    }
}

/// How often a step is attempted in all, before its outcome counts as unknown.
pub fn attempts_max(policy: &RetryPolicy, resolving: Option<&RetryPolicy>) -> u32 {
    policy.attempts.saturating_add(resolving.map_or(0, |resolving| resolving.attempts))
}

/// What comes after an attempt that was not answered, where the step may have taken effect.
pub(super) fn ask_again(attempt: &Attempt<'_>, resolving: Resolving<'_>, message: String) -> Next {
    let max = attempts_max(attempt.policy, Some(resolving.policy));
    if attempt.attempts < max || attempt.is_young(true) {
        return again(attempt, resolving, attempt.attempts, message);
    }
    let step = attempt.step;
    Next::Settled(if only_forward(attempt, true) {
        Event::Blocked { step, reason: format!("still unknown: {message}"), in_doubt: true }
    } else {
        Event::Unknown { step, failure: failure(step, FailureKind::Unknown, message) }
    })
}

/// What comes after the other side has said that it did not happen, where it is not called again.
pub(super) fn after_not_done(attempt: &Attempt<'_>, resolving: Resolving<'_>) -> Next {
    let message = "out of attempts; the other side says that it did not happen".to_owned();
    let (step, max) = (attempt.step, attempts_max(attempt.policy, Some(resolving.policy)));
    if attempt.attempts < max || resolving.is_fresh {
        return again(attempt, resolving, max - 1, message);
    }
    Next::Settled(match attempt.side {
        Side::After => Event::Blocked { step, reason: message, in_doubt: false },
        _ => Event::Failed { step, failure: failure(step, FailureKind::Failed, message) },
    })
}

/// What comes after a rejection behind a call that was not answered. The other side has just said that nothing happened so
/// far, so only a call that is still on its way may say otherwise.
pub(super) fn after_late_rejection(attempt: &Attempt<'_>, resolving: Resolving<'_>, reason: Rejection) -> Next {
    let max = attempts_max(attempt.policy, Some(resolving.policy));
    if attempt.attempts >= max && !resolving.is_fresh {
        return after_refusal(attempt, reason);
    }
    let message = format!("{reason} (but an earlier attempt ended without an answer)");
    again(attempt, resolving, max - 1, message)
}

/// What comes after the other side has said that it refused the call for good.
pub(super) fn after_refusal(attempt: &Attempt<'_>, reason: Rejection) -> Next {
    let step = attempt.step;
    Next::Settled(Event::Rejected { step, failure: Failure { step, kind: FailureKind::Rejected, reason } })
}

fn again(attempt: &Attempt<'_>, resolving: Resolving<'_>, attempts: u32, message: String) -> Next {
    let delay = resolving.policy.delay(attempt.attempts, attempt.random);
    let is_last = attempts.saturating_add(1) >= attempts_max(attempt.policy, Some(resolving.policy));
    let delay = if is_last { delay.max(resolving.settle_time) } else { delay };
    Next::Again { delay, in_doubt: true, attempts, message }
}
