//! An attempt that ended, and what may come next.

use std::time::Duration;

use super::backoff::backoff;
use crate::machine::event::Event;
use crate::machine::state::shape::{Effect, Side};
use crate::step::{OnExhausted, Rejection, RetryPolicy};

/// How many processes may end during the attempts of one command whose policy has no limit of attempts: 5. A command that ends
/// its process each time would otherwise end all of them.
const CRASHED_ATTEMPTS_MAX: u32 = 5;

/// The number that the last attempt has where a policy has no limit of attempts. Only a resolution has a last attempt then.
const LAST_ATTEMPT: u32 = 1_000_000;

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
        /// Whether the call certainly did not reach the other side.
        not_sent: bool,
        /// The shortest pause before the next attempt.
        delay_min: Duration,
    },
    /// With an error that only an operator can mend.
    Stuck {
        /// In words.
        message: String,
    },
    /// With an output that cannot be stored.
    Unstorable {
        /// In words.
        message: String,
    },
    /// Before the function was called: stored data does not decode, or a value that it needs is missing.
    Undecodable {
        /// In words.
        message: String,
    },
    /// It broke the rules of its transaction.
    Broke {
        /// In words.
        message: String,
    },
    /// It is not made: the process of each earlier attempt ended with it, and there were too many.
    Vanished,
    /// The resolution says that the step did not happen so far.
    NotDone,
    /// The resolution says that the other side refused the call for good.
    Refused(Rejection),
}

/// An attempt that ended, and all that matters for what comes next.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The index of the step.
    pub step: usize,
    /// Whether the step was undone.
    pub undo: bool,
    /// Where it takes effect.
    pub effect: Effect,
    /// Whether the step comes before or after the pivot.
    pub side: Side,
    /// The policy of the function that was called.
    pub policy: RetryPolicy,
    /// How many attempts were made, with this one.
    pub attempts: u32,
    /// Whether an earlier attempt ended without a definite answer; of an undo, whether an earlier attempt may have been made
    /// that was not given the output.
    pub in_doubt: bool,
    /// Of an undo: whether it is given what the step returned.
    pub informed: bool,
    /// How an unknown outcome is resolved, where the step has a resolution.
    pub resolving: Option<Resolving>,
    /// For how long attempts have failed.
    pub retrying_for: Duration,
    /// Sixty-four random bits.
    pub random: u64,
}

/// How an unknown outcome is resolved: the resolution asks the other side what became of the step.
#[derive(Debug, Clone, Copy)]
pub struct Resolving {
    /// The policy of the resolution: how many attempts it may take beyond those of the step, and how long lies in between.
    pub policy: RetryPolicy,
    /// How long after a call it can still take effect.
    pub settle_time: Duration,
    /// Whether the saga compensates, so that its steps are not called any more.
    pub is_compensating: bool,
    /// Whether a call may still be in flight that a worker made just before its process ended.
    pub is_fresh: bool,
}

/// What comes after an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// The saga moves.
    Settled(Event),
    /// It is tried again.
    Again {
        /// How long until then.
        delay: Duration,
        /// Whether it may have taken effect by now.
        in_doubt: bool,
        /// How many attempts count as made.
        attempts: u32,
        /// The error of the attempt.
        message: String,
    },
}

/// How often a step is attempted in all, with its resolution. Without a limit it is the number of the last attempt.
pub fn attempts_max(policy: &RetryPolicy, resolving: Option<&RetryPolicy>) -> u32 {
    let resolving = resolving.map_or(Some(0), |resolving| resolving.attempts);
    policy.attempts.zip(resolving).map_or(LAST_ATTEMPT, |(calls, asked)| calls.saturating_add(asked))
}

/// How many attempts may end with their process.
pub fn crashed_attempts_max(policy: &RetryPolicy, resolving: Option<&RetryPolicy>) -> u32 {
    match attempts_max(policy, resolving) {
        LAST_ATTEMPT => CRASHED_ATTEMPTS_MAX,
        max => max,
    }
}

impl Attempt {
    /// The first attempt of a step without a resolution: nothing is in doubt.
    pub fn first(step: usize, effect: Effect, side: Side, policy: RetryPolicy, random: u64) -> Self {
        Self {
            step,
            undo: false,
            effect,
            side,
            policy,
            attempts: 1,
            in_doubt: false,
            informed: false,
            resolving: None,
            retrying_for: Duration::ZERO,
            random,
        }
    }
}

impl Attempt {
    /// Whether this is the last attempt, and the answer of the resolution is certain only when the settle time has passed
    /// once more: a process ended, and it is not known when.
    pub fn must_settle(&self) -> bool {
        self.resolving.is_some_and(|resolving| {
            resolving.is_fresh && self.attempts >= attempts_max(&self.policy, Some(&resolving.policy))
        })
    }

    /// Whether the step is called in this attempt, where the resolution says that it did not happen so far.
    pub fn may_call(&self) -> bool {
        let is_compensating = self.resolving.is_some_and(|resolving| resolving.is_compensating);
        let has_call = self.policy.attempts.is_none_or(|attempts| self.attempts <= attempts);
        !is_compensating && (has_call || self.has_no_way_back(true)) && self.has_time(Duration::ZERO)
    }

    /// Whether the step can only go forward: every step after the pivot, and a pivot that may have taken effect.
    pub(in crate::machine) fn is_only_forward(&self, in_doubt: bool) -> bool {
        self.side == Side::After || (self.side == Side::Pivot && in_doubt)
    }

    /// Whether the saga was to compensate after the last attempt, and cannot: then there is no last attempt.
    pub(in crate::machine) fn has_no_way_back(&self, in_doubt: bool) -> bool {
        self.is_only_forward(in_doubt) && self.policy.on_exhausted == OnExhausted::Compensate
    }

    /// How long until the next attempt: the pause of the policy, or a longer one that the other side asks for.
    pub(in crate::machine) fn delay(&self, delay_min: Duration) -> Duration {
        backoff(&self.policy, self.attempts, self.random).max(delay_min)
    }

    /// Whether the policy allows another attempt.
    pub(in crate::machine) fn has_attempts(&self) -> bool {
        self.policy.attempts.is_none_or(|attempts| self.attempts < attempts)
    }

    /// Whether an attempt after this pause begins before the step's limit for all of them.
    pub(in crate::machine) fn has_time(&self, delay: Duration) -> bool {
        let begins_after = self.retrying_for.saturating_add(delay);
        self.policy.give_up_after.is_none_or(|limit| begins_after <= limit)
    }
}
