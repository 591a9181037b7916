//! The members. One process works on a file, so the members live in its memory and none outlives it.

use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{Incarnation, MemberId, Members, StoreError};

use crate::store::store::SqliteStore;

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

    async fn heartbeat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError> {
        Ok(self.shared().members.beat(member, ttl, self.now()))
    }

    async fn leave(&self, member: MemberId) -> Result<(), StoreError> {
        self.shared().members.leave(member);
        Ok(())
    }
}
