//! The pause between two attempts.

use std::time::Duration;

use crate::step::RetryPolicy;

/// The longest pause after the failed attempt `attempt`, which counts from 1.
pub fn backoff_max(policy: &RetryPolicy, attempt: u32) -> Duration {
    let doublings = attempt.saturating_sub(1).min(31);
    policy.base.saturating_mul(1 << doublings).min(policy.cap)
}

/// The pause after the failed attempt `attempt`, drawn with a random number of full range.
pub fn backoff(policy: &RetryPolicy, attempt: u32, random: u64) -> Duration {
    let nanos_max = u64::try_from(backoff_max(policy, attempt).as_nanos()).unwrap_or(u64::MAX);
    // The upper half of the product is even over the range, without a division.
    let nanos = (u128::from(nanos_max) * u128::from(random)) >> u64::BITS;
    Duration::from_nanos(nanos as u64)
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
        let waits: Vec<u128> = (1..=6).map(|attempt| backoff_max(&policy, attempt).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
    }

    #[test]
    fn the_wait_is_drawn_from_nothing_to_the_longest() {
        let policy = RetryPolicy::DEFAULT;
        assert_eq!(backoff(&policy, 1, 0), Duration::ZERO);
        assert_eq!(backoff(&policy, 1, 1 << 63), backoff_max(&policy, 1) / 2);
        assert_eq!(backoff(&policy, 1, u64::MAX) + Duration::from_nanos(1), backoff_max(&policy, 1));
    }

    proptest! {
        #[test]
        fn no_wait_is_longer_than_its_longest_or_than_the_cap(
            base in any::<Duration>(), cap in any::<Duration>(), attempt in any::<u32>(), random in any::<u64>(),
        ) {
            let policy = RetryPolicy { base, cap, ..RetryPolicy::DEFAULT };
            prop_assert!(backoff(&policy, attempt, random) <= backoff_max(&policy, attempt));
            prop_assert!(backoff_max(&policy, attempt) <= cap);
            prop_assert!(backoff_max(&policy, attempt) <= backoff_max(&policy, attempt.saturating_add(1)));
        }
    }
}
