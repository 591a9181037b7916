//! The members that are alive.

use std::collections::BTreeMap;
use std::time::Duration;

use super::work_row::HeldLease;
use crate::memory::clock::Moment;
use crate::store::{Incarnation, MemberId, Timestamp};

/// The members, and until when each is alive.
#[derive(Debug, Default)]
pub(in crate::memory) struct LiveMembers {
    pub(in crate::memory) until: BTreeMap<MemberId, Timestamp>,
    pub(in crate::memory) joined: i64,
}

impl LiveMembers {
    pub(in crate::memory) fn is_alive(&self, member: MemberId, now: Timestamp) -> bool {
        self.until.get(&member).is_some_and(|until| *until > now)
    }

    /// Whether a lease still excludes other owners.
    pub(in crate::memory) fn holds(&self, lease: HeldLease, now: Timestamp) -> bool {
        lease.until > now && self.is_alive(lease.owner, now)
    }

    /// A member joins.
    pub(in crate::memory) fn join(&mut self, ttl: Duration, now: Timestamp) -> Incarnation {
        // A dead member needs no row.
        self.until.retain(|_, until| *until > now);
        let others = u32::try_from(self.until.len()).unwrap_or(u32::MAX);
        self.joined += 1;
        let member = MemberId(self.joined);
        self.until.insert(member, now.plus(ttl));
        Incarnation { member, others }
    }
}
