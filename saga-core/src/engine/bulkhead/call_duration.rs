//! How long calls take, and how many may therefore wait here.

use std::time::Duration;

/// For how long a process keeps work in its queue: what it cannot begin in that time is left to others.
const AHEAD: Duration = Duration::from_secs(1);

/// How much of the average each new duration is, as a power of two: an eighth.
const WEIGHT: u32 = 3;

/// How long the calls of a definition took lately. Before the first one it is taken for a long call: one that fails at once
/// says little about the next.
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

    /// How many calls are worth a place on so many lines: one that runs and one that comes next for each line, and more
    /// where they are short.
    pub(crate) fn places(self, lines: usize) -> usize {
        let turns = AHEAD.as_micros() / self.0.as_micros().max(1);
        let turns = usize::try_from(turns).unwrap_or(usize::MAX).max(1);
        lines.saturating_add(lines.saturating_mul(turns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_calls_have_a_longer_queue() {
        let mut pace = CallDuration::default();
        assert_eq!(pace.places(64), 128, "nothing is known");
        (0..100).for_each(|_| pace.took(Duration::from_millis(10)));
        assert!((6_400..6_500).contains(&pace.places(64)), "{pace:?}");
        (0..40).for_each(|_| pace.took(Duration::from_secs(25)));
        assert_eq!(pace.places(64), 128);
        assert!(CallDuration(Duration::ZERO).places(64) > 1_000_000, "no division by nothing");
    }

    /// Found by the simulation, seed 572512882495: behind one call that failed at once, a process took a minute of work, and
    /// the others stood idle.
    #[test]
    fn one_call_that_fails_at_once_makes_no_long_queue() {
        let mut pace = CallDuration::default();
        pace.took(Duration::ZERO);
        assert_eq!(pace.places(4), 8);
    }
}
