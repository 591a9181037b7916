//! Who is alive. One process works on a file, so the members live in its memory and none outlives it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{Incarnation, MemberId, Members, StoreError, Timestamp};

use crate::clock::plus;
use crate::store::SqliteStore;

/// The members and until when they live. The dead need no entry.
#[derive(Debug, Default)]
pub(crate) struct LiveMembers(Mutex<HashMap<MemberId, Timestamp>>);

impl LiveMembers {
    /// Whether the member is alive.
    pub(crate) fn is_alive(&self, member: MemberId, now: Timestamp) -> bool {
        self.lock().get(&member).is_some_and(|until| *until > now)
    }

    fn join(&self, member: MemberId, ttl: Duration, now: Timestamp) -> u32 {
        let mut living = self.lock();
        living.retain(|_, until| *until > now);
        let others = u32::try_from(living.len()).unwrap_or(u32::MAX);
        living.insert(member, plus(now, ttl));
        others
    }

    fn beat(&self, member: MemberId, ttl: Duration, now: Timestamp) -> bool {
        match self.lock().get_mut(&member).filter(|until| **until > now) {
            Some(until) => {
                *until = plus(now, ttl);
                true
            }
            None => false,
        }
    }

    fn leave(&self, member: MemberId) {
        self.lock().remove(&member);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MemberId, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Members for SqliteStore {
    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError> {
        let member = MemberId(self.next_ids("join", 1).await?.start);
        let others = self.shared().members.join(member, ttl, self.now());
        Ok(Incarnation { member, others })
    }

    async fn rejoin(&self, former: MemberId, ttl: Duration) -> Result<Incarnation, StoreError> {
        let joined = self.join(ttl).await?;
        let member = joined.member;
        self.call("rejoin", move |session| {
            session.shared.members.leave(former);
            session.note_owner(member);
            let sql = "UPDATE saga_work SET owner = ?2 WHERE owner = ?1";
            session.conn.prepare_cached(sql)?.execute((former.0, member.0))?;
            Ok(joined)
        })
        .await
    }

    async fn beat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError> {
        Ok(self.shared().members.beat(member, ttl, self.now()))
    }

    async fn leave(&self, member: MemberId) -> Result<(), StoreError> {
        self.shared().members.leave(member);
        Ok(())
    }
}
