//! Schedules in which ended sagas are kept for a time only.

use std::time::Duration;

use super::kinds::RETENTION_SEED;
use super::random::Random;

/// How long a client may repeat a start, and what a start may take in the end.
const STARTS_REPEAT: Duration = Duration::from_mins(1);
/// A process is stopped for at most so long, and what it began before may land then: a start that it had in its hands, or the
/// call of a step.
const STANDSTILL: Duration = Duration::from_secs(40);
/// By how much the clocks of two databases may differ if a schedule does not say it.
const CLOCK_SKEW_MAX: Duration = Duration::from_mins(5);
/// It begins the random numbers of the clock skew, so that the others stay as they were without it.
const CLOCK_SKEW_SEED: u64 = 0x5c0e;
/// A lease, the time limit of a step and its settle time; the longest step of the simulation takes most of it.
const LATE: Duration = Duration::from_secs(96);

/// How long ended sagas are kept in a schedule, and what happens to them meanwhile.
#[derive(Debug, Clone)]
pub struct RetentionPlan {
    /// How long the ids of messages are kept.
    pub messages: Duration,
    /// How long completed sagas are kept in full.
    pub completed: Duration,
    /// How long compensated sagas are kept in full.
    pub compensated: Duration,
    /// How long the keys of sagas are kept.
    pub key: Duration,
    /// By how much the clock of each service is ahead of that of the one before.
    pub clock: Duration,
    /// By how much the engine assumes that the clocks of two databases may differ.
    pub clock_skew_max: Duration,
    /// Until when faults happen.
    pub busy: Duration,
    /// Whether sagas are archived.
    pub has_archive: bool,
    /// How often, in a thousand, the archive fails.
    pub archive_fails: u32,
    /// How often a process crashes when the archive has stored a batch.
    pub archive_crashes: u32,
    /// How often a message is held back until it is just accepted, or just not any more.
    pub message_held: u32,
    /// How many sagas of a thousand an operator exempts for a while.
    pub exempted: u32,
    /// How many starts of a thousand are repeated when only a tombstone is left.
    pub repeated: u32,
    /// After how long hosts ask which sagas are closed.
    pub closed_asked_after: Duration,
}

impl RetentionPlan {
    /// The retention of a schedule with one service, or with several.
    pub(crate) fn draw(seed: u64, has_services: bool) -> Self {
        let mut random = Random::new(seed ^ RETENTION_SEED);
        let random = &mut random;
        let seconds = |random: &mut Random, most: u64| Duration::from_millis(random.below(most * 1_000));
        let messages = Duration::from_secs(40) + seconds(random, 40);
        let is_tight = Random::new(seed ^ RETENTION_SEED ^ CLOCK_SKEW_SEED).per_mille(500);
        // As much as the clocks of the first and the last of three services may differ.
        let clock_skew_max = if is_tight { messages / 8 * 2 } else { CLOCK_SKEW_MAX };
        let hosted = if has_services { age_max(messages) + clock_skew_max } else { Duration::ZERO };
        let completed = hosted + LATE + seconds(random, 20);
        let compensated = if random.per_mille(500) { completed } else { hosted + LATE + seconds(random, 40) };
        let full = completed.max(compensated);
        let key = match has_services {
            true => full + hosted * 2 + seconds(random, 20),
            // Some have no tombstones.
            false if random.per_mille(250) => full.max(STARTS_REPEAT),
            false => full.max(STARTS_REPEAT) + STANDSTILL + seconds(random, 20),
        };
        let busy = match random.below(3) {
            0 => Duration::from_secs(1) + seconds(random, 10),
            1 => full + seconds(random, 20),
            _ => key + seconds(random, 20),
        };
        let rate = |random: &mut Random, often: &[u32]| *random.pick(often);
        Self {
            messages,
            completed,
            compensated,
            key,
            clock: seconds(random, messages.as_secs() / 8),
            clock_skew_max,
            busy,
            has_archive: random.per_mille(700),
            archive_fails: rate(random, &[0, 100, 400]),
            archive_crashes: rate(random, &[0, 100, 400]),
            message_held: rate(random, &[100, 300, 700]),
            exempted: rate(random, &[0, 0, 300]),
            repeated: rate(random, &[0, 500, 1000]),
            closed_asked_after: Duration::from_secs(20) + seconds(random, 60),
        }
    }

    /// The age up to which a message is acted on.
    pub(crate) fn age_max(&self) -> Duration {
        age_max(self.messages)
    }

    /// After so long without anything new all that may be purged is purged.
    pub(crate) fn purged_within(&self) -> Duration {
        // A host asks within two intervals.
        self.key + self.age_max() + self.clock_skew_max + STANDSTILL + self.closed_asked_after * 3
    }

    /// Whether a start that is repeated when only a tombstone is left comes before that is deleted.
    pub(crate) fn has_tombstones(&self) -> bool {
        self.key >= self.completed.max(self.compensated) + STANDSTILL
    }

    /// For how long the client may repeat a start.
    pub(crate) fn starts_repeat() -> Duration {
        STARTS_REPEAT
    }
}

/// With this retention of message ids.
fn age_max(messages: Duration) -> Duration {
    messages.saturating_sub(messages / 4)
}
