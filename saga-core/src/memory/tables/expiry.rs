//! When the time of an ended saga is over.

use std::time::Duration;

use super::work_row::HeldLease;
use crate::memory::clock::Moment;
use crate::store::{Expiry, NextAge, Timestamp, UnclosedWalk};

/// The dates of an ended saga.
#[derive(Debug, Clone)]
pub(in crate::memory) struct Dated {
    /// When its present age is over.
    pub(in crate::memory) at: Timestamp,
    /// When it is deleted, if it becomes a tombstone first.
    pub(in crate::memory) delete_at: Option<Timestamp>,
    pub(in crate::memory) hosts: Vec<String>,
}

impl Dated {
    /// The dates of a saga that is kept in full and ended at that time.
    pub(in crate::memory) fn full(expiry: &Expiry, ended_at: Timestamp) -> Self {
        let becomes_tombstone = expiry.delete_in > expiry.tombstone_in;
        Self {
            at: ended_at.plus(expiry.tombstone_in),
            delete_at: becomes_tombstone.then(|| ended_at.plus(expiry.delete_in)),
            hosts: expiry.hosts.clone(),
        }
    }

    pub(in crate::memory) fn tombstone(expiry: &Expiry, ended_at: Timestamp) -> Self {
        Self { at: ended_at.plus(expiry.delete_in), delete_at: None, hosts: Vec::new() }
    }

    /// It could not be purged at its time, and is due again after that interval. Its tombstone is kept for as long as it would
    /// have been.
    pub(in crate::memory) fn retried_in(self, retry_interval: Duration, now: Timestamp) -> Self {
        let at = now.plus(retry_interval);
        Self { at, delete_at: self.delete_at.map(|delete_at| delete_at.plus(at.since(self.at))), hosts: self.hosts }
    }

    /// Its time is over, and it becomes a tombstone now: a while after that, if it is purged late. The tombstone is kept for as
    /// long all the same, since the hosts are told only now.
    pub(in crate::memory) fn emptied(&self, now: Timestamp) -> Option<Self> {
        let at = self.delete_at?.plus(now.since(self.at));
        Some(Self { at, delete_at: None, hosts: Vec::new() })
    }

    pub(in crate::memory) fn next(&self) -> NextAge {
        if self.delete_at.is_some() { NextAge::Tombstone } else { NextAge::Deleted }
    }
}

/// The lease of the maintenance task.
#[derive(Debug, Default)]
pub(in crate::memory) struct MaintenanceLease {
    pub(in crate::memory) epoch: u64,
    pub(in crate::memory) lease: Option<HeldLease>,
    pub(in crate::memory) walk: UnclosedWalk,
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    /// A saga that ended at zero, is kept for an hour, and its key for another one.
    fn dated() -> Dated {
        let expiry = Expiry { tombstone_in: HOUR, delete_in: HOUR * 2, hosts: Vec::new() };
        Dated::full(&expiry, Timestamp(0))
    }

    fn hours(hours: u32) -> Timestamp {
        Timestamp(0).plus(HOUR * hours)
    }

    #[test]
    fn a_tombstone_that_is_made_late_is_kept_as_long_as_another_one() {
        assert_eq!(dated().emptied(hours(1)).map(|dated| dated.at), Some(hours(2)));
        assert_eq!(dated().emptied(hours(5)).map(|dated| dated.at), Some(hours(6)));
    }

    #[test]
    fn the_tombstone_of_a_saga_that_is_kept_for_longer_is_kept_as_long_as_another_one() {
        let kept = dated().retried_in(HOUR, hours(1));
        assert_eq!((kept.at, kept.delete_at), (hours(2), Some(hours(3))));
        assert_eq!(kept.emptied(hours(2)).map(|dated| dated.at), Some(hours(3)));
    }
}
