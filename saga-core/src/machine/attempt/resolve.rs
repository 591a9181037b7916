//! The outcome of an external step with a resolution: the other side is asked before the step is called again or undone.
//!
//! Once such a step may have taken effect, each attempt begins with the resolution. Only when the resolution says that the
//! step did not happen is it called, in the same attempt. The policy of the step limits its calls; the resolution is asked for
//! as many attempts more as its own policy allows. Before the last of them lies the settle time, in which a call that is still
//! in flight arrives or never does: so only the last attempt can say that the step certainly never happened. When the time for
//! all attempts is over, the next one is the last.

use std::time::Duration;

use super::attempt::{Attempt, Next, Resolving, attempts_max};
use super::backoff::backoff;
use super::exhausted::{exhausted, out_of_time};
use crate::machine::event::Event;
use crate::machine::state::failure::Failure;
use crate::step::{Rejection, RetryPolicy};

/// What comes after an attempt without a definite answer, where the step may have taken effect.
pub(in crate::machine) fn ask_again(
    attempt: &Attempt,
    resolving: Resolving,
    delay_min: Duration,
    message: String,
) -> Next {
    let max = attempts_max(&attempt.policy, Some(&resolving.policy));
    let is_unlimited = attempt.policy.attempts.is_none() || resolving.policy.attempts.is_none();
    if let Some(limit) = limit_that_ends(attempt, resolving, delay_min) {
        let message = out_of_time(&message, limit);
        if attempt.attempts < max {
            return again(attempt, resolving, max - 1, delay_min, message);
        }
        return Next::Settled(exhausted(attempt, true, message));
    }
    if is_unlimited || attempt.attempts < max || attempt.has_no_way_back(true) {
        let attempts = if is_unlimited { attempt.attempts.min(max - 1) } else { attempt.attempts };
        return again(attempt, resolving, attempts, delay_min, message);
    }
    Next::Settled(exhausted(attempt, true, message))
}

/// What comes after the resolution said that the step did not happen, where the step is not called again.
pub(in crate::machine) fn after_not_done(attempt: &Attempt, resolving: Resolving) -> Next {
    let message = "the other side says that it did not happen".to_owned();
    let max = attempts_max(&attempt.policy, Some(&resolving.policy));
    if attempt.attempts < max || resolving.is_fresh {
        return again(attempt, resolving, max - 1, Duration::ZERO, message);
    }
    Next::Settled(exhausted(attempt, false, message))
}

/// What comes after a rejection, where an earlier call had no answer. The resolution has just said that nothing happened so
/// far, so only a call that is still in flight may say otherwise.
pub(in crate::machine) fn after_late_rejection(attempt: &Attempt, resolving: Resolving, reason: Rejection) -> Next {
    let max = attempts_max(&attempt.policy, Some(&resolving.policy));
    if attempt.attempts >= max && !resolving.is_fresh {
        return after_refusal(attempt, reason);
    }
    let message = format!("{reason} (but an earlier attempt ended without an answer)");
    again(attempt, resolving, max - 1, Duration::ZERO, message)
}

/// What comes after the resolution said that the other side refused the call for good.
pub(in crate::machine) fn after_refusal(attempt: &Attempt, reason: Rejection) -> Next {
    let step = attempt.step;
    Next::Settled(Event::Rejected { step, failure: Failure::rejected(step, reason) })
}

/// Whether the next attempt is the last one, before which lies the settle time.
pub(crate) fn settles_next(policy: &RetryPolicy, resolving: &RetryPolicy, attempts: u32) -> bool {
    attempts.saturating_add(1) >= attempts_max(policy, Some(resolving))
}

/// The limit for all attempts, if another one would begin behind it.
fn limit_that_ends(attempt: &Attempt, resolving: Resolving, delay_min: Duration) -> Option<Duration> {
    let limit = attempt.policy.give_up_after?;
    (!attempt.has_time(pause(attempt, resolving, delay_min))).then_some(limit)
}

fn pause(attempt: &Attempt, resolving: Resolving, delay_min: Duration) -> Duration {
    backoff(&resolving.policy, attempt.attempts, attempt.random).max(delay_min)
}

fn again(attempt: &Attempt, resolving: Resolving, attempts: u32, delay_min: Duration, message: String) -> Next {
    let delay = pause(attempt, resolving, delay_min);
    let delay = if settles_next(&attempt.policy, &resolving.policy, attempts) {
        delay.max(resolving.settle_time)
    } else {
        delay
    };
    Next::Again { delay, in_doubt: true, attempts, message }
}
