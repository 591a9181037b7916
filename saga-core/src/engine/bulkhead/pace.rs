use std::time::Duration;

/// For how long a process keeps work in its queue: what it cannot begin in that time is left to others.
const AHEAD: Duration = Duration::from_secs(1);
/// How much of the average each new duration is, as a power of two: an eighth.
const WEIGHT: u32 = 3;

/// How long the calls of a definition took lately.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace(Option<Duration>);

impl Pace {
    pub(super) fn took(&mut self, duration: Duration) {
        let mean = self.0.unwrap_or(duration);
        self.0 = Some(mean.saturating_sub(mean / (1 << WEIGHT)).saturating_add(duration / (1 << WEIGHT)));
    }

    /// How many calls are worth a place on so many lines: one that runs and one that comes next for each line, and more
    /// where they are short.
    pub(super) fn places(self, lines: usize) -> usize {
        let Some(mean) = self.0 else { return 2 * lines };
        let turns = AHEAD.as_micros() / mean.as_micros().max(1);
        let turns = usize::try_from(turns).unwrap_or(usize::MAX).max(1);
        lines.saturating_add(lines.saturating_mul(turns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_calls_have_a_longer_queue() {
        let mut pace = Pace::default();
        assert_eq!(pace.places(64), 128, "nothing is known");
        pace.took(Duration::from_millis(10));
        assert_eq!(pace.places(64), 64 + 6_400);
        (0..40).for_each(|_| pace.took(Duration::from_secs(25)));
        assert_eq!(pace.places(64), 128);
        pace.took(Duration::ZERO);
        assert!(Pace(Some(Duration::ZERO)).places(64) > 1_000_000, "no division by nothing");
    }
}
