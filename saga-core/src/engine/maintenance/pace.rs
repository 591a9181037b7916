//! How much one batch takes, and how long the task rests after it.

use std::time::Duration;

/// How many sagas the first batch takes.
const FIRST: usize = 200;
/// A slow batch is not followed by a smaller one than this.
const SMALLEST: usize = 50;
const LARGEST: usize = 2_000;

/// How long a batch should take: other transactions wait at most so long for what it locks.
const AIM: Duration = Duration::from_millis(50);

/// While the process has work, the task rests this many times as long as it worked.
const RESTS: u32 = 9;

/// How long the task gives way to work that this process cannot claim yet. Then it does one batch: a backlog of hours does not stop it.
const GIVE_WAY_MAX: Duration = Duration::from_mins(1);

/// The pace of the maintenance task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    batch: usize,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { batch: FIRST }
    }

    /// How much the next batch takes.
    pub(crate) fn batch(self) -> usize {
        self.batch
    }

    /// A full batch took so long: the next one is smaller or larger.
    pub(crate) fn took(&mut self, took: Duration) {
        self.batch = if took > AIM {
            (self.batch / 2).max(SMALLEST.min(self.batch))
        } else if took < AIM / 2 {
            (self.batch * 2).min(LARGEST)
        } else {
            self.batch
        };
    }

    /// The archive refused a batch, so many times by now. It may be too large for it. It is repeated once as it was: an archive that
    /// kept it, and could not say so, overwrites it then.
    pub(crate) fn refused(&mut self, failures: u32) {
        if failures > 1 {
            self.batch = (self.batch / 2).max(1);
        }
    }

    /// How long the task rests after it has worked for so long.
    pub(crate) fn rest(worked: Duration, is_busy: bool) -> Duration {
        if is_busy { worked.saturating_mul(RESTS) } else { Duration::ZERO }
    }

    /// Whether the task waits on, after it has waited for so long since its last batch.
    pub(crate) fn gives_way(waited: Duration, is_behind: bool) -> bool {
        is_behind && waited < GIVE_WAY_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_batch_is_followed_by_a_smaller_one_and_a_quick_batch_by_a_larger_one() {
        let mut pace = Pace::new();
        pace.took(AIM * 2);
        assert_eq!(pace.batch(), FIRST / 2);
        for _ in 0..20 {
            pace.took(AIM * 2);
        }
        assert_eq!(pace.batch(), SMALLEST);
        for _ in 0..20 {
            pace.took(AIM / 4);
        }
        assert_eq!(pace.batch(), LARGEST);
        pace.took(AIM * 3 / 4);
        assert_eq!(pace.batch(), LARGEST);
    }

    #[test]
    fn a_batch_that_the_archive_refuses_twice_is_followed_by_a_smaller_one() {
        let mut pace = Pace::new();
        pace.refused(1);
        assert_eq!(pace.batch(), FIRST, "the same once more");
        (2..20).for_each(|failures| pace.refused(failures));
        assert_eq!(pace.batch(), 1);
        pace.took(AIM * 2);
        assert_eq!(pace.batch(), 1, "a slow batch is not followed by a larger one");
        pace.took(AIM / 4);
        assert_eq!(pace.batch(), 2);
    }

    #[test]
    fn the_task_takes_a_tenth_of_the_time_of_a_busy_process() {
        let worked = Duration::from_millis(40);
        assert_eq!(Pace::rest(worked, true), worked * 9);
        assert_eq!(Pace::rest(worked, false), Duration::ZERO);
    }

    #[test]
    fn a_backlog_delays_each_batch_by_a_minute_at_most() {
        assert!(Pace::gives_way(Duration::ZERO, true) && Pace::gives_way(GIVE_WAY_MAX.saturating_sub(AIM), true));
        assert!(!Pace::gives_way(GIVE_WAY_MAX, true), "it goes on");
        assert!(!Pace::gives_way(Duration::ZERO, false), "no work waits");
    }
}
