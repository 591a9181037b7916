//! The average duration of external calls, and how many of them may therefore wait in memory.

use std::time::Duration;

/// A process claims as many calls as it can begin within this time, and leaves the others to other processes.
const AHEAD: Duration = Duration::from_secs(1);

/// How much of the average each new duration is, as a power of two: an eighth.
const WEIGHT: u32 = 3;

/// A moving average of how long the calls of a definition take. It starts with a long call, since a first call that fails at
/// once says little about the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallDuration(Duration);

impl Default for CallDuration {
    fn default() -> Self {
        Self(AHEAD)
    }
}

impl CallDuration {
    pub(crate) fn took(&mut self, duration: Duration) {
        let mean = self.0;
        self.0 = mean.saturating_sub(mean / (1 << WEIGHT)).saturating_add(duration / (1 << WEIGHT));
    }

    /// How many slots are worth having for so many permits: at least one call that runs and one that comes next for each permit,
    /// and more if calls are short.
    pub(crate) fn slots(self, permits: usize) -> usize {
        let turns = AHEAD.as_micros() / self.0.as_micros().max(1);
        let turns = usize::try_from(turns).unwrap_or(usize::MAX).max(1);
        permits.saturating_add(permits.saturating_mul(turns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_calls_have_a_longer_queue() {
        let mut duration = CallDuration::default();
        assert_eq!(duration.slots(64), 128, "nothing is known");
        (0..100).for_each(|_| duration.took(Duration::from_millis(10)));
        assert!((6_400..6_500).contains(&duration.slots(64)), "{duration:?}");
        (0..40).for_each(|_| duration.took(Duration::from_secs(25)));
        assert_eq!(duration.slots(64), 128);
        assert!(CallDuration(Duration::ZERO).slots(64) > 1_000_000, "no division by nothing");
    }

    /// Found by the simulation, seed 572512882495: behind one call that failed at once, a process took a minute of work, and
    /// the others stood idle.
    #[test]
    fn one_call_that_fails_at_once_makes_no_long_queue() {
        let mut duration = CallDuration::default();
        duration.took(Duration::ZERO);
        assert_eq!(duration.slots(4), 8);
    }
}
