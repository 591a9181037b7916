//! What comes after an attempt.

use std::time::Duration;

use proptest::prelude::*;
use saga_core::machine::{
    Attempt, Effect, Ending, Event, FailureKind, Next, Side, after_attempt, backoff, backoff_max,
};
use saga_core::{OnExhausted, RetryPolicy};

use crate::shapes::rejection;

#[derive(Debug, Clone)]
struct Case {
    undo: bool,
    effect: Effect,
    side: Side,
    attempts: u32,
    policy: RetryPolicy,
    maybe: bool,
    informed: bool,
    retrying_for: Duration,
    random: u64,
    ending: Ending,
}

impl Case {
    fn next(&self) -> Next {
        let attempt = Attempt {
            step: 3,
            undo: self.undo,
            effect: self.effect,
            side: self.side,
            policy: self.policy,
            attempts: self.attempts,
            in_doubt: self.maybe,
            informed: self.informed,
            resolving: None,
            retrying_for: self.retrying_for,
            random: self.random,
        };
        after_attempt(&attempt, self.ending.clone())
    }

    fn undone(&self) -> Event {
        Event::Undone { step: 3, informed: self.informed && !self.maybe }
    }

    /// Whether this attempt may have reached the outside world.
    fn may_have_been_made(&self) -> bool {
        self.effect != Effect::Transactional && !matches!(self.ending, Ending::Erred { not_sent: true, .. })
    }

    fn may_have_happened_before(&self) -> bool {
        self.maybe && self.effect != Effect::Transactional
    }

    /// Whether, with this attempt, the step may have taken effect without an answer.
    fn may_have_happened(&self) -> bool {
        let now = match &self.ending {
            Ending::Erred { not_sent, .. } => !not_sent,
            Ending::Unstorable { .. } | Ending::Stuck { .. } | Ending::Vanished => true,
            _ => false,
        };
        self.may_have_happened_before() || (now && self.effect != Effect::Transactional)
    }
}

fn ending() -> impl Strategy<Value = Ending> {
    let message = || "m".to_owned();
    prop_oneof![
        Just(Ending::Done),
        Just(Ending::Rejected(rejection("declined"))),
        (any::<bool>(), 0..90_u64).prop_map(move |(not_sent, seconds)| Ending::Erred {
            message: "m".to_owned(),
            not_sent,
            delay_min: Duration::from_secs(seconds),
        }),
        Just(Ending::Unstorable { message: message() }),
        Just(Ending::Stuck { message: message() }),
        Just(Ending::Undecodable { message: message() }),
        Just(Ending::Broke { message: message() }),
        Just(Ending::Vanished),
    ]
}

prop_compose! {
    fn case()(
        undo in any::<bool>(),
        effect in prop_oneof![Just(Effect::Transactional), Just(Effect::External), Just(Effect::Remote { service: "elsewhere" })],
        side in prop_oneof![Just(Side::Before), Just(Side::Pivot), Just(Side::After)],
        attempts in 1..12_u32,
        most in prop::option::of(1..8_u32),
        compensates in any::<bool>(),
        maybe in any::<bool>(),
        informed in any::<bool>(),
        hours in 0..30_u64,
        limit in prop::option::weighted(0.3, 0..2_000_u64),
        random in any::<u64>(),
        ending in ending(),
    ) -> Case {
        let (base, cap) = (Duration::from_millis(10), Duration::from_secs(2));
        let give_up_after = limit.map(Duration::from_mins);
        let on_exhausted = if compensates { OnExhausted::Compensate } else { OnExhausted::Stuck };
        let policy = RetryPolicy { attempts: most, base, cap, give_up_after, on_exhausted };
        let retrying_for = Duration::from_secs(hours * 3600);
        Case { undo, effect, side, attempts, policy, maybe, informed, retrying_for, random, ending }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_000))]

    /// A success is a success, whatever came before it.
    #[test]
    fn a_success_settles(mut case in case()) {
        case.ending = Ending::Done;
        let expected = if case.undo { case.undone() } else { Event::Done { step: 3 } };
        prop_assert_eq!(case.next(), Next::Settled(expected));
    }

    /// A definite answer is given only where it is definite: no rejection and no failure while the step may have
    /// happened, no unknown outcome where nothing can have happened.
    #[test]
    fn definite_answers_are_definite(case in case()) {
        let Next::Settled(event) = case.next() else { return Ok(()) };
        match event {
            Event::Rejected { failure, .. } => {
                prop_assert!(!case.may_have_happened());
                prop_assert_eq!(failure.kind, FailureKind::Rejected);
                prop_assert_eq!(failure.reason, rejection("declined"));
            }
            Event::Failed { failure, .. } => {
                prop_assert!(!case.may_have_happened());
                prop_assert_eq!(failure.kind, FailureKind::Failed);
                prop_assert_eq!(case.side == Side::After, false, "behind the pivot nothing fails");
            }
            Event::Unknown { failure, .. } => {
                prop_assert!(case.may_have_happened());
                prop_assert_eq!(failure.kind, FailureKind::Unknown);
            }
            Event::Blocked { in_doubt, reason, .. } => {
                prop_assert_eq!(in_doubt, case.may_have_happened());
                prop_assert!(!reason.is_empty());
            }
            Event::Done { .. } => prop_assert_eq!(&case.ending, &Ending::Done),
            Event::Undone { .. } | Event::UndoBlocked { .. } => prop_assert!(case.undo),
            other => prop_assert!(false, "no attempt ends with {:?}", other),
        }
    }

    /// Only an error is tried again, as often as the policy says, and without a limit where the policy has none or the saga
    /// cannot compensate as it asks. A command whose process ended each time is tried again only if it also failed otherwise and
    /// has no limit. No attempt begins when the time for all of them is over, and none before the delay that the error asks for.
    #[test]
    fn an_error_is_tried_again_within_its_limit(case in case()) {
        let only_forward = case.side == Side::After || (case.side == Side::Pivot && case.may_have_happened());
        let cannot_compensate = only_forward && !case.undo && case.policy.on_exhausted == OnExhausted::Compensate;
        let is_unlimited = case.policy.attempts.is_none() || cannot_compensate;
        let has_attempts = case.policy.attempts.is_none_or(|attempts| case.attempts < attempts);
        let (expected, delay_min) = match case.ending {
            Ending::Erred { delay_min, .. } => (is_unlimited || has_attempts, delay_min),
            Ending::Vanished => (is_unlimited && !case.retrying_for.is_zero(), Duration::ZERO),
            _ => (false, Duration::ZERO),
        };
        let begins_at = case.retrying_for + backoff(&case.policy, case.attempts, case.random).max(delay_min);
        let expected = expected && case.policy.give_up_after.is_none_or(|limit| begins_at <= limit);
        match case.next() {
            Next::Again { delay, in_doubt, .. } => {
                prop_assert!(expected);
                prop_assert!(delay >= delay_min && delay <= backoff_max(&case.policy, case.attempts).max(delay_min));
                let was_blind = case.maybe
                    || (!case.informed && case.may_have_been_made() && case.ending != Ending::Vanished);
                prop_assert_eq!(in_doubt, if case.undo { was_blind } else { case.may_have_happened() });
            }
            Next::Settled(_) => prop_assert!(!expected),
        }
    }

    /// An error, an answer that cannot be stored and the end of a process undo nothing, unless the policy says so.
    #[test]
    fn g5_an_error_undoes_nothing_unless_the_policy_says_so(mut case in case()) {
        case.undo = false;
        let Next::Settled(event) = case.next() else { return Ok(()) };
        let is_undone = matches!(event, Event::Failed { .. } | Event::Unknown { .. });
        let was_rejected = matches!(case.ending, Ending::Rejected(_));
        let may_compensate = case.policy.on_exhausted == OnExhausted::Compensate
            && matches!(case.ending, Ending::Erred { .. } | Ending::Vanished);
        prop_assert!(!is_undone || was_rejected || may_compensate, "{:?}", event);
    }

    /// The pivot is compensated when it was rejected or is out of attempts without a trace, and never when it may have
    /// happened; an output that cannot be stored needs an operator.
    #[test]
    fn the_pivot_and_what_cannot_be_stored(mut case in case()) {
        case.undo = false;
        case.side = Side::Pivot;
        if case.may_have_happened() && case.ending != Ending::Done {
            let next = case.next();
            let goes_back = matches!(next, Next::Settled(Event::Rejected { .. } | Event::Failed { .. }));
            prop_assert!(!goes_back);
        }
        case.ending = Ending::Unstorable { message: "too long".to_owned() };
        let is_outside = case.effect != Effect::Transactional;
        let next = case.next();
        prop_assert!(matches!(next, Next::Settled(Event::Blocked { in_doubt, .. }) if in_doubt == is_outside), "stuck");
    }

    /// What a compensation says ends in an undo, another attempt or a person, and in nothing else; a rejection is not
    /// tried again.
    #[test]
    fn a_compensation_succeeds_or_needs_a_person(mut case in case()) {
        case.undo = true;
        let next = case.next();
        match case.ending {
            Ending::Done => prop_assert_eq!(next, Next::Settled(case.undone())),
            Ending::Erred { .. } | Ending::Vanished => {}
            _ => prop_assert!(matches!(next, Next::Settled(Event::UndoBlocked { .. })), "stuck"),
        }
    }
}
