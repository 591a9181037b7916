use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{Ids, Incarnation, Lease, MemberId, Members, StoreError};

use super::{FaultyStore, StoreFlaw};

/// From this size on, a block of ids begins at 1 again.
const LARGE: u32 = 50;

#[async_trait]
impl Ids for FaultyStore {
    async fn reserve_ids(&self, count: u32) -> Result<Range<i64>, StoreError> {
        if self.has(StoreFlaw::RepeatsIds) && count >= LARGE {
            return Ok(1..i64::from(count) + 1);
        }
        self.inner.reserve_ids(count).await
    }
}

#[async_trait]
impl Members for FaultyStore {
    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError> {
        let joined = self.inner.join(ttl).await?;
        let member = if self.has(StoreFlaw::RepeatsMembers) { MemberId(1) } else { joined.member };
        Ok(Incarnation { member, ..joined })
    }

    async fn rejoin(&self, former: MemberId, ttl: Duration) -> Result<Incarnation, StoreError> {
        if self.has(StoreFlaw::ReleasesRowsOnRejoin) {
            self.inner.leave(self.revived(former)).await?;
            return self.join(ttl).await;
        }
        self.inner.rejoin(self.revived(former), ttl).await
    }

    async fn heartbeat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError> {
        let lives = self.inner.heartbeat(self.revived(member), ttl).await?;
        if !lives && self.has(StoreFlaw::RevivesMembers) {
            let again = self.inner.join(ttl).await?.member;
            self.noted().revived.insert(member, again);
            return Ok(true);
        }
        Ok(lives || self.has(StoreFlaw::AcceptsDeadHeartbeats))
    }

    async fn leave(&self, member: MemberId) -> Result<(), StoreError> {
        self.inner.leave(self.revived(member)).await
    }
}

impl FaultyStore {
    pub(super) fn revived(&self, member: MemberId) -> MemberId {
        self.noted().revived.get(&member).copied().unwrap_or(member)
    }

    pub(super) fn revived_lease(&self, lease: Lease) -> Lease {
        Lease { owner: self.revived(lease.owner), ..lease }
    }
}
