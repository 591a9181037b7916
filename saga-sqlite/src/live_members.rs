//! The members that are alive. One process works on a file, so they live in its memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use saga_core::store::{MemberId, Timestamp};

use crate::clock::plus;

/// The members, and until when each is alive. A dead member needs no entry.
#[derive(Debug, Default)]
pub(crate) struct LiveMembers(Mutex<HashMap<MemberId, Timestamp>>);

impl LiveMembers {
    /// Whether the member is alive.
    pub(crate) fn is_alive(&self, member: MemberId, now: Timestamp) -> bool {
        self.lock().get(&member).is_some_and(|until| *until > now)
    }

    pub(crate) fn join(&self, member: MemberId, ttl: Duration, now: Timestamp) -> u32 {
        let mut living = self.lock();
        living.retain(|_, until| *until > now);
        let others = u32::try_from(living.len()).unwrap_or(u32::MAX);
        living.insert(member, plus(now, ttl));
        others
    }

    pub(crate) fn beat(&self, member: MemberId, ttl: Duration, now: Timestamp) -> bool {
        match self.lock().get_mut(&member).filter(|until| **until > now) {
            Some(until) => {
                *until = plus(now, ttl);
                true
            }
            None => false,
        }
    }

    pub(crate) fn leave(&self, member: MemberId) {
        self.lock().remove(&member);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MemberId, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
