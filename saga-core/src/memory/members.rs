use std::time::Duration;

use async_trait::async_trait;

use super::MemoryStore;
use super::clock::Moment;
use crate::store::{Incarnation, MemberId, Members, StoreError};

#[async_trait]
impl Members for MemoryStore {
    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError> {
        self.writing("join", |data, now| {
            let members = &mut data.members;
            // The dead need no row: a member without one is dead.
            members.until.retain(|_, until| *until > now);
            let others = u32::try_from(members.until.len()).unwrap_or(u32::MAX);
            members.joined += 1;
            let member = MemberId(members.joined);
            members.until.insert(member, now.plus(ttl));
            Some(Ok(Incarnation { member, others }))
        })
        .await
    }

    async fn beat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError> {
        self.writing("beat", |data, now| {
            let lives = data.members.lives(member, now);
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
