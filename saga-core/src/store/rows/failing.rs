//! Since when, or after how many attempts, a step counts as failing.

use std::time::Duration;

use crate::store::Timestamp;

/// A step is failing when it has been attempted this often without success, or when its attempts have failed for this long.
///
/// It is retried as its policy says; an operator should look at its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failing {
    /// How many attempts: 10.
    pub attempts: u32,
    /// How long: 10 minutes.
    pub retrying_for: Duration,
}

impl Failing {
    /// Ten attempts, or ten minutes.
    pub const DEFAULT: Self = Self { attempts: 10, retrying_for: Duration::from_mins(10) };

    /// Whether a step is failing whose attempts have failed since `retrying_since`, at the time `now`.
    pub fn is_met(&self, attempts: u32, retrying_since: Option<Timestamp>, now: Timestamp) -> bool {
        let limit = i64::try_from(self.retrying_for.as_micros()).unwrap_or(i64::MAX);
        retrying_since.is_some_and(|since| attempts >= self.attempts || now.0.saturating_sub(since.0) >= limit)
    }
}

impl Default for Failing {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_failing_after_so_many_attempts_or_so_long() {
        let failing = Failing::DEFAULT;
        let (since, soon) = (Some(Timestamp(0)), Timestamp(1));
        let late = Timestamp(600_000_000);
        assert!(!failing.is_met(9, since, soon));
        assert!(failing.is_met(10, since, soon), "ten attempts");
        assert!(failing.is_met(1, since, late), "ten minutes");
        assert!(!failing.is_met(1, since, Timestamp(599_999_999)));
        assert!(!failing.is_met(10, None, late), "no attempt of it failed: processes ended");
    }
}
