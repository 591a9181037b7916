//! What something cost, and what it may cost.

use std::ops::{Add, Mul};

/// What a number of steps cost the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cost {
    /// Commits that were written to the log and flushed.
    pub(crate) commits: u64,
    /// Statements that were sent, each of a message of several counted by itself.
    pub(crate) statements: u64,
    /// Times that the client spoke and had to wait for an answer.
    pub(crate) round_trips: u64,
    /// Records in the server's log.
    pub(crate) wal_records: u64,
}

/// What a batch may cost: so much for itself, and so much for each of its steps or sagas.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) batch: Cost,
    pub(crate) each: Cost,
}

impl Bound {
    /// What so many in one batch may cost.
    pub(crate) fn of(&self, items: u64) -> Cost {
        self.batch + self.each * items
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            commits: self.commits + other.commits,
            statements: self.statements + other.statements,
            round_trips: self.round_trips + other.round_trips,
            wal_records: self.wal_records + other.wal_records,
        }
    }
}

impl Mul<u64> for Cost {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self {
            commits: self.commits * times,
            statements: self.statements * times,
            round_trips: self.round_trips * times,
            wal_records: self.wal_records * times,
        }
    }
}

impl Cost {
    /// The counters that are above the bound, by name.
    pub(crate) fn above(&self, bound: &Self) -> Vec<&'static str> {
        let counters = [
            ("commits", self.commits, bound.commits),
            ("statements", self.statements, bound.statements),
            ("round trips", self.round_trips, bound.round_trips),
            ("WAL records", self.wal_records, bound.wal_records),
        ];
        counters.into_iter().filter(|(_, cost, bound)| cost > bound).map(|(name, ..)| name).collect()
    }

    /// Fails when a counter is above the bound.
    #[track_caller]
    pub(crate) fn assert_within(&self, bound: &Self, what: &str) {
        let above = self.above(bound);
        assert!(above.is_empty(), "{what} got heavier in {above:?}\n cost {self:?}\nbound {bound:?}");
    }
}
