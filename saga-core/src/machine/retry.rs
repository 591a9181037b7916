use std::time::Duration;

/// For how long a step that can only go forward is retried before the saga is stuck: 24 hours.
pub const RETRY_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long to wait before the next attempt: exponential backoff with full jitter.
///
/// `failed` attempts have been made, at least one; `random` are sixty-four random bits. The delay lies between nothing
/// and `min(cap, base * 2^(failed - 1))`.
///
/// Source: Marc Brooker, *Exponential Backoff And Jitter*, AWS Architecture Blog, 2015 ("full jitter").
pub fn retry_delay(base: Duration, cap: Duration, failed: u32, random: u64) -> Duration {
    let doublings = failed.saturating_sub(1).min(31);
    let ceiling = base.saturating_mul(1 << doublings).min(cap);
    let ceiling_micros = u128::min(ceiling.as_micros(), u128::from(u64::MAX)) as u64;
    // The high half of the product is uniform over 0..=ceiling, without the bias of a remainder.
    let micros = (u128::from(random) * (u128::from(ceiling_micros) + 1)) >> 64;
    Duration::from_micros(micros as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(failed: u32, random: u64, expect_ms: u64) {
        let delay = retry_delay(Duration::from_millis(100), Duration::from_secs(30), failed, random);
        assert_eq!(delay.as_millis() as u64, expect_ms, "failed {failed}, random {random:#x}");
    }

    #[test]
    fn grows_up_to_the_cap_and_draws_from_nothing_to_all() {
        check(1, 0, 0);
        check(1, u64::MAX, 100);
        check(1, u64::MAX / 2, 50);
        check(2, u64::MAX, 200);
        check(4, u64::MAX, 800);
        check(9, u64::MAX, 25_600);
        check(10, u64::MAX, 30_000);
        check(u32::MAX, u64::MAX, 30_000);
        check(0, u64::MAX, 100);
    }
}
