use std::time::Duration;

use saga_testkit::sim::Random;

use super::timetable::Plan;

/// A letter is open for as long as an order is kept, so the last one comes when this share of the faults is over.
const SPAN: (u32, u32) = (2, 3);
const EVERY: Duration = Duration::from_secs(15);
const LETTERS_MIN: u64 = 3;
/// So that the times do not follow from the same numbers as the faults.
const STREAM: u64 = 0x6465_6164_6c65_7474;

/// A malformed message about an order that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlannedLetter {
    /// How long after the orders began to flow it is sent.
    pub(crate) at: Duration,
    /// Its id.
    pub(crate) message: u128,
}

impl PlannedLetter {
    /// Those of a plan, in a run that purges: each within its own part of the time.
    pub(crate) fn of(plan: &Plan) -> Vec<Self> {
        let mut random = Random::new(plan.seed ^ STREAM);
        let span = plan.length * SPAN.0 / SPAN.1;
        let count = (span.as_secs() / EVERY.as_secs()).max(LETTERS_MIN);
        let part = span.as_millis() as u64 / count;
        let letter = |nth: u64| {
            let at = Duration::from_millis(nth * part + random.below(part.max(1)));
            let message = u128::from(random.bits()) << 64 | u128::from(random.bits());
            Self { at, message }
        };
        (0..count).map(letter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;

    #[test]
    fn each_plan_has_letters_early_enough_and_the_same_seed_the_same() {
        for seed in 0..50 {
            let plan = Plan::of(seed, Duration::from_mins(1), Shape::ReplicasOnly);
            let letters = PlannedLetter::of(&plan);
            assert!(letters.len() as u64 >= LETTERS_MIN, "{letters:?}");
            assert!(letters.is_sorted_by_key(|letter| letter.at), "{letters:?}");
            assert!(letters.iter().all(|letter| letter.at < plan.length * SPAN.0 / SPAN.1), "{letters:?}");
            assert_eq!(letters, PlannedLetter::of(&plan));
        }
    }
}
