//! What comes after the last attempt.

use super::attempt::Attempt;
use super::event::Event;
use super::failure::{Failure, FailureKind};
use crate::step::OnExhausted;

/// No attempt follows. The policy says whether the saga compensates; behind the pivot it cannot.
pub(super) fn exhausted(attempt: &Attempt, in_doubt: bool, message: String) -> Event {
    let step = attempt.step;
    if attempt.policy.on_exhausted == OnExhausted::Stuck || attempt.is_only_forward(in_doubt) {
        return Event::Blocked { step, reason: out_of_attempts(attempt, &message), in_doubt };
    }
    if in_doubt {
        Event::Unknown { step, failure: Failure::new(step, FailureKind::Unknown, message) }
    } else {
        Event::Failed { step, failure: Failure::new(step, FailureKind::Failed, message) }
    }
}

/// The reason as it is stored.
pub(super) fn out_of_attempts(attempt: &Attempt, message: &str) -> String {
    format!("out of attempts ({}): {message}", attempt.attempts)
}
