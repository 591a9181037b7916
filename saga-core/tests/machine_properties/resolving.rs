//! What comes after an attempt of a step whose other side can be asked.

use std::time::Duration;

use proptest::prelude::*;
use saga_core::machine::{Attempt, Effect, Ending, Event, Next, Resolving, Side, after_attempt, attempts_max};
use saga_core::{OnExhausted, RetryPolicy};

use crate::shapes::rejection;

const SETTLE_TIME: Duration = Duration::from_secs(77);

#[derive(Debug, Clone)]
struct Asked {
    side: Side,
    attempts: u32,
    calls: Option<u32>,
    asks: Option<u32>,
    on_exhausted: OnExhausted,
    maybe: bool,
    is_compensating: bool,
    is_fresh: bool,
    retrying_for: Duration,
    ending: Ending,
}

impl Asked {
    fn policy(&self, attempts: Option<u32>) -> RetryPolicy {
        let (base, cap) = (Duration::from_millis(10), Duration::from_secs(1));
        RetryPolicy { attempts, base, cap, give_up_after: None, on_exhausted: self.on_exhausted }
    }

    fn max(&self) -> u32 {
        attempts_max(&self.policy(self.calls), Some(&self.policy(self.asks)))
    }

    /// Whether the step is called in this attempt, and what comes after it.
    fn next(&self) -> (bool, Next) {
        let (policy, asking) = (self.policy(self.calls), self.policy(self.asks));
        let resolving = Resolving {
            policy: asking,
            settle_time: SETTLE_TIME,
            is_compensating: self.is_compensating,
            is_fresh: self.is_fresh,
        };
        let attempt = Attempt {
            step: 3,
            undo: false,
            effect: Effect::External,
            side: self.side,
            policy,
            attempts: self.attempts,
            in_doubt: self.maybe,
            informed: false,
            resolving: Some(resolving),
            retrying_for: self.retrying_for,
            random: 0,
        };
        (attempt.may_call(), after_attempt(&attempt, self.ending.clone()))
    }

    /// Whether the saga was to compensate and cannot, since the step may have taken effect.
    fn has_no_way_back(&self) -> bool {
        self.side != Side::Before && self.on_exhausted == OnExhausted::Compensate
    }
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Done),
        Just(Ending::NotDone),
        Just(Ending::Refused(rejection("declined"))),
        Just(Ending::Rejected(rejection("declined"))),
        any::<bool>().prop_map(|not_sent| Ending::Erred {
            message: "m".to_owned(),
            not_sent,
            delay_min: Duration::ZERO,
        }),
    ]
}

prop_compose! {
    fn asked()(
        side in prop_oneof![Just(Side::Before), Just(Side::Pivot), Just(Side::After)],
        attempts in 1..9_u32,
        calls in prop::option::of(1..5_u32),
        asks in prop::option::of(1..5_u32),
        compensates in any::<bool>(),
        maybe in any::<bool>(),
        is_compensating in any::<bool>(),
        is_fresh in any::<bool>(),
        hours in 0..48_u64,
        ending in ending(),
    ) -> Asked {
        let retrying_for = Duration::from_hours(hours);
        let on_exhausted = if compensates { OnExhausted::Compensate } else { OnExhausted::Stuck };
        Asked { side, attempts, calls, asks, on_exhausted, maybe, is_compensating, is_fresh, retrying_for, ending }
    }
}

proptest! {
    /// What may have happened counts as not done only when the other side says so in the last attempt, which its owner
    /// did not inherit, or when it has refused the call for good.
    #[test]
    fn g5_only_the_last_answer_says_that_it_never_happened(mut asked in asked()) {
        asked.maybe = true;
        let (_, next) = asked.next();
        let is_without_effect = matches!(next, Next::Settled(Event::Rejected { .. } | Event::Failed { .. }));
        let is_last = asked.attempts >= asked.max() && !asked.is_fresh;
        let is_no = matches!(asked.ending, Ending::NotDone | Ending::Rejected(_));
        let may = matches!(asked.ending, Ending::Refused(_)) || (is_no && is_last);
        prop_assert!(!is_without_effect || may, "{:?}", next);
    }

    /// Before the last attempt lies the settle time, and none is made beyond it but of what can only go forward.
    #[test]
    fn g5_before_the_last_question_lies_the_settle_time(mut asked in asked()) {
        asked.maybe = true;
        if let (_, Next::Again { delay, in_doubt, attempts, .. }) = asked.next() {
            prop_assert!(in_doubt, "only an answer that settles it says otherwise");
            prop_assert!(attempts < asked.max() || asked.has_no_way_back());
            prop_assert!(attempts + 1 < asked.max() || delay >= SETTLE_TIME);
        }
    }

    /// A saga that goes back calls nothing; one that goes forward calls as often as the policy of the step says, and
    /// what can only go forward without a limit.
    #[test]
    fn it_is_called_within_its_own_policy(asked in asked()) {
        let (may_call, _) = asked.next();
        let has_call = asked.calls.is_none_or(|calls| asked.attempts <= calls);
        prop_assert_eq!(may_call, !asked.is_compensating && (has_call || asked.has_no_way_back()));
    }

    /// Whatever the answers, a step before the pivot is settled within the attempts of both policies and one more.
    #[test]
    fn asking_comes_to_an_end(mut asked in asked(), endings in prop::collection::vec(ending(), 32)) {
        (asked.side, asked.attempts, asked.is_fresh) = (Side::Before, 1, false);
        (asked.calls, asked.asks) = (asked.calls.or(Some(3)), asked.asks.or(Some(2)));
        for made in 0..32_u32 {
            asked.ending = endings[made as usize].clone();
            match asked.next().1 {
                Next::Settled(_) => {
                    prop_assert!(made <= asked.max());
                    return Ok(());
                }
                Next::Again { in_doubt, attempts, .. } => {
                    (asked.maybe, asked.attempts) = (in_doubt, attempts + 1);
                }
            }
        }
        prop_assert!(false, "it was never settled");
    }

    /// Without an answer nothing is undone, unless the policy says so.
    #[test]
    fn g5_an_outcome_that_stays_unknown_undoes_nothing(mut asked in asked(), not_sent in any::<bool>()) {
        asked.ending = Ending::Erred { message: "m".to_owned(), not_sent, delay_min: Duration::ZERO };
        asked.on_exhausted = OnExhausted::Stuck;
        let (_, next) = asked.next();
        prop_assert!(matches!(next, Next::Again { .. } | Next::Settled(Event::Blocked { .. })), "{:?}", next);
    }
}
