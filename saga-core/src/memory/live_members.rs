//! The members that are alive.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clock::Moment;
use super::work_row::HeldLease;
use crate::store::{Incarnation, MemberId, Timestamp};

/// The members, and until when each is alive.
#[derive(Debug, Default)]
pub(super) struct LiveMembers {
    pub(super) until: BTreeMap<MemberId, Timestamp>,
    pub(super) joined: i64,
}

impl LiveMembers {
    pub(super) fn is_alive(&self, member: MemberId, now: Timestamp) -> bool {
        self.until.get(&member).is_some_and(|until| *until > now)
    }

    /// Whether a lease still excludes other owners.
    pub(super) fn holds(&self, lease: HeldLease, now: Timestamp) -> bool {
        lease.until > now && self.is_alive(lease.owner, now)
    }

    /// A member joins.
    pub(super) fn join(&mut self, ttl: Duration, now: Timestamp) -> Incarnation {
        // A dead member needs no row.
        self.until.retain(|_, until| *until > now);
        let others = u32::try_from(self.until.len()).unwrap_or(u32::MAX);
        self.joined += 1;
        let member = MemberId(self.joined);
        self.until.insert(member, now.plus(ttl));
        Incarnation { member, others }
    }
}
