use std::time::Duration;

/// How often a call is attempted, the pauses between the attempts, and what follows the last one.
///
/// By default a call is attempted until it succeeds or rejects: nothing but a rejection, an operator or a deadline makes a saga
/// compensate.
///
/// The pause before attempt `n + 1` is drawn uniformly between zero and `base * 2^(n - 1)`, at most `cap` (full jitter), so
/// that sagas that failed together do not retry together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The number of attempts, including the first; at least 1. `None` is no limit.
    pub attempts: Option<u32>,
    /// The longest pause before the second attempt.
    pub base: Duration,
    /// The longest pause.
    pub cap: Duration,
    /// No attempt begins later than this after the first failed attempt.
    pub give_up_after: Option<Duration>,
    /// What follows when `attempts` or `give_up_after` is reached.
    pub on_exhausted: OnExhausted,
}

/// What follows when the attempts of a step are used up, or its time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExhausted {
    /// The saga is stuck: it waits for an operator, who retries the step, skips it or compensates the saga.
    #[default]
    Stuck,
    /// The saga compensates, as after a rejection. Where it cannot, since its pivot took effect or may have, the step is
    /// retried without a limit of attempts, and is stuck when its time is over.
    Compensate,
}

impl RetryPolicy {
    /// The default of the longest pause before the second attempt.
    pub const DEFAULT_BASE: Duration = Duration::from_millis(100);
    /// The default of the longest pause.
    pub const DEFAULT_CAP: Duration = Duration::from_mins(1);
    /// The default policy.
    pub const DEFAULT: Self = Self {
        attempts: None,
        base: Self::DEFAULT_BASE,
        cap: Self::DEFAULT_CAP,
        give_up_after: None,
        on_exhausted: OnExhausted::Stuck,
    };

    /// Whether another attempt follows the failed attempt `attempt`, which counts from 1.
    pub const fn allows_after(&self, attempt: u32) -> bool {
        match self.attempts {
            Some(attempts) => attempt < attempts,
            None => true,
        }
    }

    /// Whether an attempt may begin this long after the first failed attempt.
    pub fn has_time_after(&self, retrying_for: Duration) -> bool {
        self.give_up_after.is_none_or(|limit| retrying_for <= limit)
    }

    /// The longest pause after the failed attempt `attempt`, which counts from 1.
    pub fn delay_max(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        self.base.saturating_mul(1 << doublings).min(self.cap)
    }

    /// The pause after the failed attempt `attempt`, drawn with a random number of full range.
    pub fn delay(&self, attempt: u32, random: u64) -> Duration {
        let nanos_max = u64::try_from(self.delay_max(attempt).as_nanos()).unwrap_or(u64::MAX);
        // The upper half of the product is even over the range, without a division.
        let nanos = (u128::from(nanos_max) * u128::from(random)) >> u64::BITS;
        Duration::from_nanos(nanos as u64)
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_longest_wait_doubles_up_to_the_cap() {
        let policy = RetryPolicy {
            attempts: Some(8),
            base: Duration::from_millis(100),
            cap: Duration::from_secs(1),
            ..RetryPolicy::DEFAULT
        };
        let waits: Vec<u128> = (1..=6).map(|attempt| policy.delay_max(attempt).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
    }

    #[test]
    fn the_last_attempt_is_the_last() {
        let policy = RetryPolicy { attempts: Some(3), ..RetryPolicy::DEFAULT };
        assert_eq!([1, 2, 3, 4].map(|attempt| policy.allows_after(attempt)), [true, true, false, false]);
        assert!(RetryPolicy::DEFAULT.allows_after(u32::MAX), "the default has no limit");
    }

    #[test]
    fn the_wait_is_drawn_from_nothing_to_the_longest() {
        let policy = RetryPolicy::DEFAULT;
        assert_eq!(policy.delay(1, 0), Duration::ZERO);
        assert_eq!(policy.delay(1, 1 << 63), policy.delay_max(1) / 2);
        assert_eq!(policy.delay(1, u64::MAX) + Duration::from_nanos(1), policy.delay_max(1));
    }

    proptest! {
        #[test]
        fn no_wait_is_longer_than_its_longest_or_than_the_cap(
            base in any::<Duration>(), cap in any::<Duration>(), attempt in any::<u32>(), random in any::<u64>(),
        ) {
            let policy = RetryPolicy { base, cap, ..RetryPolicy::DEFAULT };
            prop_assert!(policy.delay(attempt, random) <= policy.delay_max(attempt));
            prop_assert!(policy.delay_max(attempt) <= cap);
            prop_assert!(policy.delay_max(attempt) <= policy.delay_max(attempt.saturating_add(1)));
        }
    }
}
