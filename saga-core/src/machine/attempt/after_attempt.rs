//! What comes after an attempt: another one, or an event of the saga.

use std::time::Duration;

use super::attempt::{Attempt, Ending, Next};
use super::exhausted::{exhausted, given_up, out_of_attempts, out_of_time};
use super::resolve::{after_late_rejection, after_not_done, after_refusal, ask_again};
use crate::machine::event::Event;
use crate::machine::state::failure::{Failure, FailureKind};
use crate::step::limited;

/// What comes after this attempt.
pub fn after_attempt(attempt: &Attempt, ending: Ending) -> Next {
    if attempt.undo { after_undo(attempt, ending) } else { after_do(attempt, ending) }
}

fn after_do(attempt: &Attempt, ending: Ending) -> Next {
    let step = attempt.step;
    let unknown = |message| Event::Unknown { step, failure: Failure::new(step, FailureKind::Unknown, message) };
    let is_outside = attempt.effect.is_outside();
    let was_in_doubt = attempt.in_doubt && is_outside;
    Next::Settled(match ending {
        Ending::Done => Event::Done { step },
        // An earlier attempt may have taken effect, so this answer does not say that the step did not.
        Ending::Rejected(reason) if was_in_doubt => {
            if let Some(resolving) = attempt.resolving {
                return after_late_rejection(attempt, resolving, reason);
            }
            unknown(format!("{reason} (but an earlier attempt ended without an answer)"))
        }
        Ending::Rejected(reason) => Event::Rejected { step, failure: Failure::rejected(step, reason) },
        Ending::Erred { message, not_sent, delay_min } => {
            let in_doubt = was_in_doubt || (is_outside && !not_sent);
            return after_error(attempt, in_doubt, delay_min, message);
        }
        Ending::Vanished => return after_vanished(attempt, was_in_doubt || is_outside),
        Ending::NotDone => match attempt.resolving {
            Some(resolving) => return after_not_done(attempt, resolving),
            None => unknown("the other side says that it did not happen".to_owned()),
        },
        Ending::Refused(reason) => return after_refusal(attempt, reason),
        // Of an unstorable output the effect is there, and calling again would bring the same output.
        Ending::Unstorable { message } | Ending::Stuck { message } => {
            Event::Blocked { step, reason: message, in_doubt: was_in_doubt || is_outside }
        }
        Ending::Undecodable { message } | Ending::Broke { message } => {
            Event::Blocked { step, reason: message, in_doubt: was_in_doubt }
        }
    })
}

fn after_error(attempt: &Attempt, in_doubt: bool, delay_min: Duration, message: String) -> Next {
    if let (true, Some(resolving)) = (in_doubt, attempt.resolving) {
        return ask_again(attempt, resolving, delay_min, message);
    }
    let delay = attempt.delay(delay_min);
    let has_attempts = attempt.has_attempts() || attempt.has_no_way_back(in_doubt);
    if !has_attempts {
        return Next::Settled(exhausted(attempt, in_doubt, message));
    }
    again_in_time(attempt, in_doubt, delay, message)
        .unwrap_or_else(|message| Next::Settled(exhausted(attempt, in_doubt, message)))
}

/// A step without a limit of attempts is retried if one of them failed without ending the process. A step whose attempts only
/// ended their processes is not.
fn after_vanished(attempt: &Attempt, in_doubt: bool) -> Next {
    let is_unlimited = attempt.policy.attempts.is_none() || attempt.has_no_way_back(in_doubt);
    if is_unlimited && !attempt.retrying_for.is_zero() {
        let delay = attempt.delay(Duration::ZERO);
        if let Ok(again) = again_in_time(attempt, in_doubt, delay, vanished(attempt)) {
            return again;
        }
    }
    Next::Settled(given_up(attempt, in_doubt, vanished(attempt)))
}

fn vanished(attempt: &Attempt) -> String {
    format!("its process ended during each of its {} attempts", attempt.attempts)
}

fn after_undo(attempt: &Attempt, ending: Ending) -> Next {
    let step = attempt.step;
    Next::Settled(match ending {
        Ending::Done => Event::Undone { step, informed: attempt.informed && !attempt.in_doubt },
        Ending::Erred { message, not_sent, delay_min } => {
            let was_uninformed = attempt.effect.is_outside() && !attempt.informed && !not_sent;
            let has_attempts = attempt.has_attempts();
            let reason = if has_attempts {
                match again_in_time(attempt, attempt.in_doubt || was_uninformed, attempt.delay(delay_min), message) {
                    Ok(again) => return again,
                    Err(message) => message,
                }
            } else {
                message
            };
            Event::UndoBlocked { step, reason: out_of_attempts(attempt, &reason) }
        }
        Ending::Vanished if attempt.policy.attempts.is_none() && !attempt.retrying_for.is_zero() => {
            match again_in_time(attempt, attempt.in_doubt, attempt.delay(Duration::ZERO), vanished(attempt)) {
                Ok(again) => return again,
                Err(reason) => Event::UndoBlocked { step, reason },
            }
        }
        Ending::Vanished => Event::UndoBlocked { step, reason: vanished(attempt) },
        Ending::Rejected(reason) | Ending::Refused(reason) => Event::UndoBlocked { step, reason: reason.to_string() },
        Ending::NotDone => Event::UndoBlocked { step, reason: "a compensation has no resolution".to_owned() },
        Ending::Unstorable { message }
        | Ending::Stuck { message }
        | Ending::Undecodable { message }
        | Ending::Broke { message } => Event::UndoBlocked { step, reason: message },
    })
}

/// Another attempt after this pause, or the message with the limit that leaves no time for it.
fn again_in_time(attempt: &Attempt, in_doubt: bool, delay: Duration, message: String) -> Result<Next, String> {
    match attempt.policy.give_up_after {
        Some(limit) if !attempt.has_time(delay) => Err(out_of_time(&message, limit)),
        _ => Ok(Next::Again { delay, in_doubt, attempts: attempt.attempts, message: limited(message) }),
    }
}
