//! The outcome of an external step with a resolution: the other side is asked before the step is called again or undone.
//!
//! Once such a step may have taken effect, each attempt begins with the resolution. Only when the resolution says that the
//! step did not happen is it called, in the same attempt. The policy of the step limits its calls; the resolution is asked for
//! as many attempts more as its own policy allows. Before the last of them lies the settle time, in which a call that is still
//! in flight arrives or never does: so only the last attempt can say that the step certainly never happened.

use super::attempt::{Attempt, Next, Resolving, attempts_max};
use super::event::Event;
use super::failure::{Failure, FailureKind};
use super::shape::Side;
use crate::step::Rejection;

/// What comes after an attempt without a definite answer, where the step may have taken effect.
pub(super) fn ask_again(attempt: &Attempt<'_>, resolving: Resolving<'_>, message: String) -> Next {
    let max = attempts_max(attempt.policy, Some(resolving.policy));
    if attempt.attempts < max || attempt.is_young(true) {
        return again(attempt, resolving, attempt.attempts, message);
    }
    let step = attempt.step;
    Next::Settled(if attempt.is_only_forward(true) {
        Event::Blocked { step, reason: format!("still unknown: {message}"), in_doubt: true }
    } else {
        Event::Unknown { step, failure: Failure::new(step, FailureKind::Unknown, message) }
    })
}

/// What comes after the resolution said that the step did not happen, where the step is not called again.
pub(super) fn after_not_done(attempt: &Attempt<'_>, resolving: Resolving<'_>) -> Next {
    let message = "out of attempts; the other side says that it did not happen".to_owned();
    let (step, max) = (attempt.step, attempts_max(attempt.policy, Some(resolving.policy)));
    if attempt.attempts < max || resolving.is_fresh {
        return again(attempt, resolving, max - 1, message);
    }
    Next::Settled(match attempt.side {
        Side::After => Event::Blocked { step, reason: message, in_doubt: false },
        _ => Event::Failed { step, failure: Failure::new(step, FailureKind::Failed, message) },
    })
}

/// What comes after a rejection, where an earlier call had no answer. The resolution has just said that nothing happened so
/// far, so only a call that is still in flight may say otherwise.
pub(super) fn after_late_rejection(attempt: &Attempt<'_>, resolving: Resolving<'_>, reason: Rejection) -> Next {
    let max = attempts_max(attempt.policy, Some(resolving.policy));
    if attempt.attempts >= max && !resolving.is_fresh {
        return after_refusal(attempt, reason);
    }
    let message = format!("{reason} (but an earlier attempt ended without an answer)");
    again(attempt, resolving, max - 1, message)
}

/// What comes after the resolution said that the other side refused the call for good.
pub(super) fn after_refusal(attempt: &Attempt<'_>, reason: Rejection) -> Next {
    let step = attempt.step;
    Next::Settled(Event::Rejected { step, failure: Failure::rejected(step, reason) })
}

fn again(attempt: &Attempt<'_>, resolving: Resolving<'_>, attempts: u32, message: String) -> Next {
    let delay = resolving.policy.delay(attempt.attempts, attempt.random);
    let is_last = attempts.saturating_add(1) >= attempts_max(attempt.policy, Some(resolving.policy));
    let delay = if is_last { delay.max(resolving.settle_time) } else { delay };
    Next::Again { delay, in_doubt: true, attempts, message }
}
