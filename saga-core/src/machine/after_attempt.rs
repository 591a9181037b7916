//! What comes after an attempt: another one, or an event of the saga.

use super::attempt::{Attempt, Ending, Next};
use super::event::Event;
use super::failure::{Failure, FailureKind};
use super::resolve::{after_late_rejection, after_not_done, after_refusal, ask_again};
use crate::step::limited;

/// What comes after this attempt.
pub fn after_attempt(attempt: &Attempt<'_>, ending: Ending) -> Next {
    if attempt.undo { after_undo(attempt, ending) } else { after_do(attempt, ending) }
}

fn after_do(attempt: &Attempt<'_>, ending: Ending) -> Next {
    let step = attempt.step;
    let unknown = |message| Event::Unknown { step, failure: Failure::new(step, FailureKind::Unknown, message) };
    let was_in_doubt = attempt.in_doubt && attempt.effect.is_outside();
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
        Ending::Erred { message, not_sent } => {
            let in_doubt = was_in_doubt || (attempt.effect.is_outside() && !not_sent);
            if let (true, Some(resolving)) = (in_doubt, attempt.resolving) {
                return ask_again(attempt, resolving, message);
            }
            match try_again(attempt, in_doubt, &message) {
                Some(again) => return again,
                None if !attempt.has_time() && attempt.is_only_forward(in_doubt) => {
                    Event::Blocked { step, reason: out_of_time(attempt, message), in_doubt }
                }
                None if attempt.is_only_forward(in_doubt) => {
                    let reason = format!("still failing after {}: {message}", hours(attempt));
                    Event::Blocked { step, reason, in_doubt }
                }
                None if in_doubt => unknown(out_of_time(attempt, message)),
                None => {
                    let message = out_of_time(attempt, message);
                    Event::Failed { step, failure: Failure::new(step, FailureKind::Failed, message) }
                }
            }
        }
        Ending::Vanished => return after_vanished(attempt, was_in_doubt || attempt.effect.is_outside()),
        Ending::NotDone => match attempt.resolving {
            Some(resolving) => return after_not_done(attempt, resolving),
            None => unknown("the other side says that it did not happen".to_owned()),
        },
        Ending::Refused(reason) => return after_refusal(attempt, reason),
        // The effect is there, and calling again would bring the same output.
        Ending::Unstorable { message } if attempt.effect.is_outside() => unknown(message),
        Ending::Unstorable { message } | Ending::Undecodable { message } | Ending::Broke { message } => {
            Event::Blocked { step, reason: message, in_doubt: was_in_doubt }
        }
    })
}

/// A step that can only go forward is retried if some attempts failed without ending the process, since its age limits
/// that. A step whose attempts only ended their processes has no age.
fn after_vanished(attempt: &Attempt<'_>, in_doubt: bool) -> Next {
    let (step, message) = (attempt.step, vanished(attempt));
    let is_only_forward = attempt.is_only_forward(in_doubt);
    if attempt.is_young(in_doubt) && !attempt.retrying_for.is_zero() && attempt.has_time() {
        return again(attempt, in_doubt, message);
    }
    Next::Settled(match in_doubt {
        _ if is_only_forward => Event::Blocked { step, reason: message, in_doubt },
        true => Event::Unknown { step, failure: Failure::new(step, FailureKind::Unknown, message) },
        false => Event::Failed { step, failure: Failure::new(step, FailureKind::Failed, message) },
    })
}

fn vanished(attempt: &Attempt<'_>) -> String {
    format!("its process ended during each of its {} attempts", attempt.attempts)
}

fn after_undo(attempt: &Attempt<'_>, ending: Ending) -> Next {
    let step = attempt.step;
    Next::Settled(match ending {
        Ending::Done => Event::Undone { step, informed: attempt.informed && !attempt.in_doubt },
        Ending::Erred { message, not_sent } if attempt.attempts < attempt.policy.attempts && attempt.has_time() => {
            let was_uninformed = attempt.effect.is_outside() && !attempt.informed && !not_sent;
            return again(attempt, attempt.in_doubt || was_uninformed, message);
        }
        Ending::Erred { message, .. } => {
            let message = out_of_time(attempt, message);
            Event::UndoBlocked { step, reason: format!("out of attempts ({}): {message}", attempt.attempts) }
        }
        Ending::Rejected(reason) | Ending::Refused(reason) => Event::UndoBlocked { step, reason: reason.to_string() },
        Ending::NotDone => Event::UndoBlocked { step, reason: "a compensation has no resolution".to_owned() },
        Ending::Vanished => Event::UndoBlocked { step, reason: vanished(attempt) },
        Ending::Unstorable { message } | Ending::Undecodable { message } | Ending::Broke { message } => {
            Event::UndoBlocked { step, reason: message }
        }
    })
}

/// Before the pivot the policy's attempts are the limit. A step that can only go forward is retried until a set age. A limit
/// for all attempts together holds on either side.
fn try_again(attempt: &Attempt<'_>, in_doubt: bool, message: &str) -> Option<Next> {
    let is_allowed = if attempt.is_only_forward(in_doubt) {
        attempt.is_young(in_doubt)
    } else {
        attempt.attempts < attempt.policy.attempts
    };
    (is_allowed && attempt.has_time()).then(|| again(attempt, in_doubt, message.to_owned()))
}

fn out_of_time(attempt: &Attempt<'_>, message: String) -> String {
    match attempt.policy.give_up_after {
        Some(limit) if !attempt.has_time() => format!("{message} (given up: all attempts together have {limit:?})"),
        _ => message,
    }
}

fn again(attempt: &Attempt<'_>, in_doubt: bool, message: String) -> Next {
    let delay = attempt.policy.delay(attempt.attempts, attempt.random);
    Next::Again { delay, in_doubt, attempts: attempt.attempts, message: limited(message) }
}

fn hours(attempt: &Attempt<'_>) -> String {
    format!("{} h", attempt.retrying_for.as_secs() / 3600)
}
