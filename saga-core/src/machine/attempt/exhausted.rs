//! What comes after the last attempt.

use std::time::Duration;

use super::attempt::Attempt;
use crate::machine::event::Event;
use crate::machine::state::failure::{Failure, FailureKind};
use crate::step::OnExhausted;

/// No attempt follows, since they are used up or their time is over. The policy says whether the saga compensates; behind the
/// pivot it cannot.
pub(in crate::machine) fn exhausted(attempt: &Attempt, in_doubt: bool, message: String) -> Event {
    match given_up(attempt, in_doubt, message) {
        Event::Blocked { step, reason, in_doubt } => {
            Event::Blocked { step, reason: out_of_attempts(attempt, &reason), in_doubt }
        }
        failure => failure,
    }
}

/// No attempt follows, for the reason that the message gives.
pub(in crate::machine) fn given_up(attempt: &Attempt, in_doubt: bool, message: String) -> Event {
    let step = attempt.step;
    if attempt.policy.on_exhausted == OnExhausted::Stuck || attempt.is_only_forward(in_doubt) {
        Event::Blocked { step, reason: message, in_doubt }
    } else if in_doubt {
        Event::Unknown { step, failure: Failure::new(step, FailureKind::Unknown, message) }
    } else {
        Event::Failed { step, failure: Failure::new(step, FailureKind::Failed, message) }
    }
}

/// The reason as it is stored.
pub(in crate::machine) fn out_of_attempts(attempt: &Attempt, message: &str) -> String {
    format!("out of attempts ({}): {message}", attempt.attempts)
}

/// The message with the limit that leaves no time for another attempt.
pub(in crate::machine) fn out_of_time(message: &str, limit: Duration) -> String {
    format!("{message} (given up: all attempts together have {limit:?})")
}
