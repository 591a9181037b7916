use std::time::Duration;

use super::event::Event;
use super::resolve::{Resolving, after_late_rejection, after_not_done, after_refusal, ask_again};
use super::shape::{Effect, Side};
use super::state::{Failure, FailureKind};
use crate::step::{Rejection, RetryPolicy, limited};

/// For how long a step that can only go forward is retried before the saga is stuck: 24 hours.
pub const RETRY_AGE_MAX: Duration = Duration::from_hours(24);

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// With an output.
    Done,
    /// With a business failure.
    Rejected(Rejection),
    /// With an error, a panic or a time-out.
    Erred {
        /// In words.
        message: String,
        /// Whether the outside world certainly saw nothing of it.
        not_sent: bool,
    },
    /// With an output that cannot be stored.
    Unstorable {
        /// In words.
        message: String,
    },
    /// Before the function was called: stored data does not decode, or something it needs is missing.
    Undecodable {
        /// In words.
        message: String,
    },
    /// It broke the rules of its transaction.
    Broke {
        /// In words.
        message: String,
    },
    /// It is not made: as many were as the policy allows, and their processes ended with them.
    Vanished,
    /// The other side was asked, and says that the step did not happen so far.
    NotDone,
    /// The other side was asked, and says that it refused the call for good.
    Refused(Rejection),
}

/// An attempt that ended, and all that matters for what comes next.
#[derive(Debug, Clone)]
pub struct Attempt<'a> {
    /// The step's index.
    pub step: usize,
    /// Whether the step was undone.
    pub undo: bool,
    /// Where its effect lies.
    pub effect: Effect,
    /// Where the step stands to the pivot.
    pub side: Side,
    /// The policy of what was called.
    pub policy: &'a RetryPolicy,
    /// How many attempts were made, with this one.
    pub attempts: u32,
    /// Whether an earlier attempt ended without a definite answer; of an undo, whether one may have been made that was not
    /// given the output.
    pub in_doubt: bool,
    /// Of an undo: whether it is given what the step returned.
    pub informed: bool,
    /// How the other side is asked what became of the step, where it can be.
    pub resolving: Option<Resolving<'a>>,
    /// For how long attempts have failed.
    pub retrying_for: Duration,
    /// Sixty-four random bits.
    pub random: u64,
}

/// What comes after an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// The saga moves.
    Settled(Event),
    /// It is tried again.
    Again {
        /// After so long.
        delay: Duration,
        /// Whether it may have taken effect by now.
        in_doubt: bool,
        /// How many attempts count as made.
        attempts: u32,
        /// What the attempt said.
        message: String,
    },
}

/// What comes after this attempt.
pub fn after_attempt(attempt: &Attempt<'_>, ending: Ending) -> Next {
    if attempt.undo { after_undo(attempt, ending) } else { after_do(attempt, ending) }
}

fn after_do(attempt: &Attempt<'_>, ending: Ending) -> Next {
    let step = attempt.step;
    let unknown = |message| Event::Unknown { step, failure: failure(step, FailureKind::Unknown, message) };
    let is_maybe = attempt.in_doubt && attempt.effect.is_outside();
    Next::Settled(match ending {
        Ending::Done => Event::Done { step },
        // An earlier attempt may have taken effect, so this answer does not say that the step did not.
        Ending::Rejected(reason) if is_maybe => {
            if let Some(resolving) = attempt.resolving {
                return after_late_rejection(attempt, resolving, reason);
            }
            unknown(format!("{reason} (but an earlier attempt ended without an answer)"))
        }
        Ending::Rejected(reason) => {
            Event::Rejected { step, failure: Failure { step, kind: FailureKind::Rejected, reason } }
        }
        Ending::Erred { message, not_sent } => {
            let maybe = is_maybe || (attempt.effect.is_outside() && !not_sent);
            if let (true, Some(resolving)) = (maybe, attempt.resolving) {
                return ask_again(attempt, resolving, message);
            }
            match try_again(attempt, maybe, &message) {
                Some(again) => return again,
                None if !has_time(attempt) && only_forward(attempt, maybe) => {
                    Event::Blocked { step, reason: out_of_time(attempt, message), in_doubt: maybe }
                }
                None if only_forward(attempt, maybe) => {
                    let reason = format!("still failing after {}: {message}", hours(attempt));
                    Event::Blocked { step, reason, in_doubt: maybe }
                }
                None if maybe => unknown(out_of_time(attempt, message)),
                None => {
                    let message = out_of_time(attempt, message);
                    Event::Failed { step, failure: failure(step, FailureKind::Failed, message) }
                }
            }
        }
        Ending::Vanished => return after_vanished(attempt, is_maybe || attempt.effect.is_outside()),
        Ending::NotDone => match attempt.resolving {
            Some(resolving) => return after_not_done(attempt, resolving),
            None => unknown("the other side says that it did not happen".to_owned()),
        },
        Ending::Refused(reason) => return after_refusal(attempt, reason),
        // The effect is there, and calling again would bring the same output.
        Ending::Unstorable { message } if attempt.effect.is_outside() => unknown(message),
        Ending::Unstorable { message } | Ending::Undecodable { message } | Ending::Broke { message } => {
            Event::Blocked { step, reason: message, in_doubt: is_maybe }
        }
    })
}

/// What can only go forward is tried on where attempts failed otherwise as well, since its age will end that. One that
/// never did anything but end its process has no age.
fn after_vanished(attempt: &Attempt<'_>, maybe: bool) -> Next {
    let (step, message) = (attempt.step, vanished(attempt));
    let is_only_forward = only_forward(attempt, maybe);
    if is_only_forward && !attempt.retrying_for.is_zero() && attempt.retrying_for < RETRY_AGE_MAX && has_time(attempt) {
        return again(attempt, maybe, message);
    }
    Next::Settled(match maybe {
        _ if is_only_forward => Event::Blocked { step, reason: message, in_doubt: maybe },
        true => Event::Unknown { step, failure: failure(step, FailureKind::Unknown, message) },
        false => Event::Failed { step, failure: failure(step, FailureKind::Failed, message) },
    })
}

fn vanished(attempt: &Attempt<'_>) -> String {
    format!("its process ended during each of its {} attempts", attempt.attempts)
}

fn after_undo(attempt: &Attempt<'_>, ending: Ending) -> Next {
    let step = attempt.step;
    Next::Settled(match ending {
        Ending::Done => Event::Undone { step, informed: attempt.informed && !attempt.in_doubt },
        Ending::Erred { message, not_sent } if attempt.attempts < attempt.policy.attempts && has_time(attempt) => {
            let was_blind = attempt.effect.is_outside() && !attempt.informed && !not_sent;
            return again(attempt, attempt.in_doubt || was_blind, message);
        }
        Ending::Erred { message, .. } => {
            let message = out_of_time(attempt, message);
            Event::UndoBlocked { step, reason: format!("out of attempts ({}): {message}", attempt.attempts) }
        }
        Ending::Rejected(reason) | Ending::Refused(reason) => Event::UndoBlocked { step, reason: reason.to_string() },
        Ending::NotDone => Event::UndoBlocked { step, reason: "nobody asks what became of a compensation".to_owned() },
        Ending::Vanished => Event::UndoBlocked { step, reason: vanished(attempt) },
        Ending::Unstorable { message } | Ending::Undecodable { message } | Ending::Broke { message } => {
            Event::UndoBlocked { step, reason: message }
        }
    })
}

/// Before the pivot the policy's attempts are the limit. What can only go forward is tried until a set age: every step
/// after the pivot, and a pivot that may have happened. A limit for all attempts together holds on either side.
fn try_again(attempt: &Attempt<'_>, maybe: bool, message: &str) -> Option<Next> {
    let may = if only_forward(attempt, maybe) {
        attempt.retrying_for < RETRY_AGE_MAX
    } else {
        attempt.attempts < attempt.policy.attempts
    };
    (may && has_time(attempt)).then(|| again(attempt, maybe, message.to_owned()))
}

/// Whether the next attempt begins before the step's limit for all of them.
fn has_time(attempt: &Attempt<'_>) -> bool {
    let delay = attempt.policy.delay(attempt.attempts, attempt.random);
    attempt.policy.has_time_after(attempt.retrying_for.saturating_add(delay))
}

fn out_of_time(attempt: &Attempt<'_>, message: String) -> String {
    match attempt.policy.give_up_after {
        Some(limit) if !has_time(attempt) => format!("{message} (given up: all attempts together have {limit:?})"),
        _ => message,
    }
}

pub(super) fn only_forward(attempt: &Attempt<'_>, maybe: bool) -> bool {
    attempt.side == Side::After || (attempt.side == Side::Pivot && maybe)
}

fn again(attempt: &Attempt<'_>, maybe: bool, message: String) -> Next {
    let delay = attempt.policy.delay(attempt.attempts, attempt.random);
    Next::Again { delay, in_doubt: maybe, attempts: attempt.attempts, message: limited(message) }
}

pub(super) fn failure(step: usize, kind: FailureKind, message: String) -> Failure {
    Failure { step, kind, reason: Rejection::new(message) }
}

fn hours(attempt: &Attempt<'_>) -> String {
    format!("{} h", attempt.retrying_for.as_secs() / 3600)
}
