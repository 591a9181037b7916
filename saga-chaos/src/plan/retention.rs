use std::time::Duration;

use super::fault::{Fault, Server};
use super::timetable::{MEMBER_SILENCE, Plan};

/// All databases are on one server, and read one clock.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(1);
/// Three times the time limit of the slowest step.
const SETTLES_WITHIN: Duration = Duration::from_secs(9);
/// How long a message may be on its way, beyond the longest fault.
const ON_THE_WAY: Duration = Duration::from_secs(16);
/// The same where servers are killed as well.
const ON_THE_WAY_WITHOUT_SERVERS: Duration = Duration::from_secs(40);
/// How long a start may be on its way, beyond the longest fault.
const START_ON_THE_WAY: Duration = Duration::from_secs(20);
/// Several times within the time for which anything is kept.
const PURGE_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// The orders of a file have ended, and are tombstones, so long after the age at which they become some.
const FILE_ENDS_WITHIN: Duration = Duration::from_secs(10);

/// How long is kept what has ended, in a run that purges: as short as the settings of the runtime allow, while no message and no
/// start comes later than they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetentionTimes {
    /// How long the ids of messages are kept.
    pub(crate) message_ids: Duration,
    /// By how much the clocks of two databases may differ.
    pub(crate) clock_skew_max: Duration,
    /// How long an order is kept in full.
    pub(crate) full: Duration,
    /// How long its key is kept.
    pub(crate) keys: Duration,
    /// After how long an order that cannot be purged yet is tried again.
    pub(crate) purge_retry: Duration,
    /// How long after a file was given out for the first time its orders may be started.
    pub(crate) starts_within: Duration,
}

impl RetentionTimes {
    pub(crate) fn of(plan: &Plan) -> Self {
        let longest = plan.faults.iter().map(|planned| planned.fault.lasts()).max().unwrap_or_default();
        let kills_servers = plan.count(|fault| matches!(fault, Fault::KillServer(Server::Postgres))) > 0;
        let age_max = longest + if kills_servers { ON_THE_WAY_WITHOUT_SERVERS } else { ON_THE_WAY };
        // Of an id's time a quarter is the margin.
        let message_ids = Duration::from_secs((age_max.as_secs() * 4).div_ceil(3));
        let hosted = message_ids.saturating_sub(message_ids / 4) + CLOCK_SKEW_MAX;
        let full = hosted + MEMBER_SILENCE + SETTLES_WITHIN;
        // There is some time in which a start meets a tombstone.
        let keys = full + (hosted * 2).max(FILE_ENDS_WITHIN * 3 + longest + START_ON_THE_WAY);
        let starts_within = keys.saturating_sub(longest + START_ON_THE_WAY);
        let (clock_skew_max, purge_retry) = (CLOCK_SKEW_MAX, PURGE_RETRY_INTERVAL);
        Self { message_ids, clock_skew_max, full, keys, purge_retry, starts_within }
    }

    /// Whether the orders of a file that was given out for the first time so long ago are tombstones, and may still be started.
    pub(crate) fn are_tombstones(&self, age: Duration) -> bool {
        let last = self.starts_within.saturating_sub(FILE_ENDS_WITHIN);
        (self.full + FILE_ENDS_WITHIN..last).contains(&age)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;

    #[test]
    fn a_start_may_meet_a_tombstone_and_comes_before_that_is_deleted() {
        for seed in 0..200 {
            for (shape, seconds) in [(Shape::ReplicasOnly, 25), (Shape::Everything, 60), (Shape::Everything, 1_200)] {
                let times = RetentionTimes::of(&Plan::of(seed, Duration::from_secs(seconds), shape));
                let begin = times.full + FILE_ENDS_WITHIN;
                assert!(times.are_tombstones(begin) && !times.are_tombstones(times.full), "{times:?}");
                assert!(times.are_tombstones(begin + Duration::from_secs(9)), "{times:?}");
                assert!(!times.are_tombstones(times.starts_within) && times.starts_within < times.keys, "{times:?}");
            }
        }
    }
}
