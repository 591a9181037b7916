//! Work.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{
    ClaimRequest, Claimed, DefinitionId, Ids, Lease, MemberId, ShareRequest, StoreError, Timestamp, Work, WorkId,
    WorkRef,
};

use crate::clock::{elapsed_between, plus};
use crate::statements::claims::claim;
use crate::statements::rows::{self, signed};
use crate::statements::shares::claim_shares;
use crate::store::store::SqliteStore;

#[async_trait]
impl Ids for SqliteStore {
    async fn reserve_ids(&self, count: u32) -> Result<Range<i64>, StoreError> {
        self.next_ids("reserve_ids", count).await
    }
}

#[async_trait]
impl Work for SqliteStore {
    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        self.call("claim", move |session| Ok(claim(session, &request)?)).await
    }

    async fn claim_shares(&self, request: ShareRequest) -> Result<Claimed, StoreError> {
        self.call("claim_shares", move |session| Ok(claim_shares(session, &request)?)).await
    }

    async fn renew(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        let work = work.to_vec();
        self.call("renew", move |session| {
            session.note_owner(lease.owner);
            let until = plus(session.now(), lease.ttl).0;
            let sql = "UPDATE saga_work SET owner = ?3, leased_until = ?4 WHERE id = ?1 AND epoch = ?2";
            let mut statement = session.conn.prepare_cached(sql)?;
            let renew =
                |work: &WorkRef| Ok(statement.execute((work.id.0, signed(work.epoch), lease.owner.0, until))? == 1);
            work.iter().map(renew).collect()
        })
        .await
    }

    async fn begin(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        let work = work.to_vec();
        self.call("begin", move |session| {
            session.note_owner(lease.owner);
            let until = plus(session.now(), lease.ttl).0;
            // A row that waits was not begun by an owner that vanished.
            let sql = "UPDATE saga_work SET owner = ?3, leased_until = ?4, \
                 suspect = suspect AND waiting IS NOT epoch, waiting = NULL WHERE id = ?1 AND epoch = ?2";
            let mut statement = session.conn.prepare_cached(sql)?;
            let begin =
                |work: &WorkRef| Ok(statement.execute((work.id.0, signed(work.epoch), lease.owner.0, until))? == 1);
            work.iter().map(begin).collect()
        })
        .await
    }

    async fn release_work(&self, work: &[WorkRef]) -> Result<Vec<bool>, StoreError> {
        let work = work.to_vec();
        self.call("release_work", move |session| {
            let sql = "UPDATE saga_work SET owner = NULL, leased_until = NULL, epoch = epoch + 1, \
                 waiting = CASE WHEN waiting = epoch THEN epoch + 1 END WHERE id = ?1 AND epoch = ?2";
            let mut statement = session.conn.prepare_cached(sql)?;
            work.iter().map(|work| Ok(statement.execute((work.id.0, signed(work.epoch)))? == 1)).collect()
        })
        .await
    }

    async fn release_unbegun(&self, owner: MemberId) -> Result<u64, StoreError> {
        self.call("release_unbegun", move |session| {
            let sql = "UPDATE saga_work SET owner = NULL, leased_until = NULL, epoch = epoch + 1, waiting = epoch + 1 \
                 WHERE owner = ?1 AND waiting = epoch";
            Ok(session.conn.prepare_cached(sql)?.execute([owner.0])? as u64)
        })
        .await
    }

    async fn begin_attempt(&self, work: WorkRef, attempt: u32) -> Result<bool, StoreError> {
        self.call("begin_attempt", move |session| {
            let sql = "UPDATE saga_work SET attempts = ?3 WHERE id = ?1 AND epoch = ?2";
            Ok(session.conn.prepare_cached(sql)?.execute((work.id.0, signed(work.epoch), attempt))? == 1)
        })
        .await
    }

    async fn report(
        &self,
        work: WorkRef,
        number: u64,
        progress: &[u8],
        lease: Option<Lease>,
    ) -> Result<bool, StoreError> {
        let progress = progress.to_vec();
        self.call("report", move |session| {
            let now = session.now();
            let sql = "UPDATE saga_work SET report = ?3, reported_at = ?4, progress = ?5, \
                 owner = coalesce(?6, owner), leased_until = coalesce(?7, leased_until) \
                 WHERE id = ?1 AND epoch = ?2 AND coalesce(report, 0) <= ?3";
            let owner = lease.map(|lease| lease.owner.0);
            let until = lease.map(|lease| plus(now, lease.ttl).0);
            let row = (work.id.0, signed(work.epoch), signed(number), now.0, &*progress, owner, until);
            let is_kept = session.conn.prepare_cached(sql)?.execute(row)? == 1;
            if let Some(lease) = lease {
                session.note_owner(lease.owner);
            }
            Ok(is_kept)
        })
        .await
    }

    async fn note_late(&self, work: WorkId, output: &[u8]) -> Result<bool, StoreError> {
        let output = output.to_vec();
        self.call("note_late", move |session| {
            // Two calls of one step key have one effect outside, so the first report is kept.
            let sql = "UPDATE saga_work SET late = coalesce(late, ?2) WHERE id = ?1";
            Ok(session.conn.prepare_cached(sql)?.execute((work.0, &*output))? == 1)
        })
        .await
    }

    async fn backlog(&self) -> Result<(u64, Option<Duration>), StoreError> {
        let shared = std::sync::Arc::clone(self.shared());
        self.query("backlog", move |conn| {
            let now = shared.clock.now();
            let mut statement = conn.prepare_cached(
                "SELECT owner, leased_until > ?1 AS lasts, count(*), min(due_at) FROM saga_work GROUP BY owner, lasts",
            )?;
            let mut groups = statement.query([now.0])?;
            let (mut rows, mut oldest) = (0, None::<i64>);
            while let Some(group) = groups.next()? {
                let owner = group.get::<_, Option<i64>>(0)?.map(MemberId);
                let lasts = group.get::<_, Option<bool>>(1)?.unwrap_or(false);
                if lasts && owner.is_some_and(|owner| shared.members.is_alive(owner, now)) {
                    continue;
                }
                rows += rows::unsigned(group, 2)?;
                let due: i64 = group.get(3)?;
                oldest = Some(oldest.map_or(due, |oldest| oldest.min(due)));
            }
            let due = oldest.filter(|due| *due <= now.0);
            Ok((rows, due.map(|due| elapsed_between(Timestamp(due), now))))
        })
        .await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(SqliteStore::now(self))
    }

    async fn unknown_work(&self, known: &[DefinitionId]) -> Result<Vec<(DefinitionId, u64)>, StoreError> {
        let known = known.to_vec();
        self.query("unknown_work", move |conn| {
            let mut statement = conn.prepare_cached(
                "SELECT d.name, d.version, count(*) FROM saga_work w JOIN saga_definitions d ON d.id = w.definition \
                 GROUP BY w.definition ORDER BY d.name, d.version",
            )?;
            let counts = statement.query_map((), |row| {
                let definition = DefinitionId { name: rows::text(row, 0)?.into(), version: row.get(1)? };
                Ok((definition, rows::unsigned(row, 2)?))
            })?;
            counts.filter(|row| !row.as_ref().is_ok_and(|(definition, _)| known.contains(definition))).collect()
        })
        .await
    }
}
