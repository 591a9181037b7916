use std::time::Duration;

/// How often a call is tried, and how long the runtime waits in between.
///
/// The wait before attempt `n + 1` is drawn evenly between nothing and `base * 2^(n - 1)`, at most `cap`
/// (full jitter), so that callers that failed together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often the call is made in all, at least once.
    pub attempts: u32,
    /// The longest wait before the second attempt.
    pub base: Duration,
    /// The longest wait before any attempt.
    pub cap: Duration,
}

impl RetryPolicy {
    /// How often a call is made in all, where nothing else is said.
    pub const DEFAULT_ATTEMPTS: u32 = 5;
    /// The longest wait before the second attempt, where nothing else is said.
    pub const DEFAULT_BASE: Duration = Duration::from_millis(100);
    /// The longest wait before any attempt, where nothing else is said.
    pub const DEFAULT_CAP: Duration = Duration::from_secs(30);
    /// The policy of a call for which nothing else is said.
    pub const DEFAULT: Self =
        Self { attempts: Self::DEFAULT_ATTEMPTS, base: Self::DEFAULT_BASE, cap: Self::DEFAULT_CAP };

    /// Whether another attempt follows the failed attempt `attempt`, which counts from 1.
    pub const fn allows_after(&self, attempt: u32) -> bool {
        attempt < self.attempts
    }

    /// The longest wait after the failed attempt `attempt`, which counts from 1.
    pub fn delay_max(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        self.base.saturating_mul(1 << doublings).min(self.cap)
    }

    /// The wait after the failed attempt `attempt`, drawn with a random number of full range.
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
