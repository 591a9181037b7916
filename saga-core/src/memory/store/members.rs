//! The members of the store.

use std::time::Duration;

use async_trait::async_trait;

use crate::memory::MemoryStore;
use crate::memory::clock::Moment;
use crate::memory::statements::claims::is_locked;
use crate::memory::tables::work_row::WorkRow;
use crate::store::{Incarnation, MemberId, Members, StoreError, WorkId};

#[async_trait]
impl Members for MemoryStore {
    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError> {
        self.writing("join", |data, now| Some(Ok(data.members.join(ttl, now)))).await
    }

    async fn rejoin(&self, former: MemberId, ttl: Duration) -> Result<Incarnation, StoreError> {
        self.writing("rejoin", |data, now| {
            data.members.until.remove(&former);
            let joined = data.members.join(ttl, now);
            let held = |row: &WorkRow| row.lease.is_some_and(|lease| lease.owner == former);
            let left: Vec<WorkId> = data.work.iter().filter(|(_, row)| held(row)).map(|(id, _)| *id).collect();
            for id in left.into_iter().filter(|id| !is_locked(data, *id)).collect::<Vec<_>>() {
                if let Some(lease) = data.work.get_mut(&id).and_then(|row| row.lease.as_mut()) {
                    lease.owner = joined.member;
                }
            }
            Some(Ok(joined))
        })
        .await
    }

    async fn heartbeat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError> {
        self.writing("heartbeat", |data, now| {
            let lives = data.members.is_alive(member, now);
            if lives {
                data.members.until.insert(member, now.plus(ttl));
            }
            Some(Ok(lives))
        })
        .await
    }

    async fn leave(&self, member: MemberId) -> Result<(), StoreError> {
        self.writing("leave", |data, _| {
            data.members.until.remove(&member);
            Some(Ok(()))
        })
        .await
    }
}
