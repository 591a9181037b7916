//! The work of the store.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;

use crate::memory::MemoryStore;
use crate::memory::clock::Moment;
use crate::memory::statements::claims::{claim, claim_where, is_free, is_locked};
use crate::memory::tables::work_row::{HeldLease, WorkRow};
use crate::store::{
    ClaimRequest, Claimed, DefinitionId, Ids, Lease, MemberId, Reported, ShareRequest, StoreError, Timestamp, Work,
    WorkId, WorkRef,
};

#[async_trait]
impl Ids for MemoryStore {
    async fn reserve_ids(&self, count: u32) -> Result<Range<i64>, StoreError> {
        self.writing("reserve_ids", |data, _| {
            let first = data.ids + 1;
            data.ids += i64::from(count);
            Some(Ok(first..data.ids + 1))
        })
        .await
    }
}

#[async_trait]
impl Work for MemoryStore {
    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        self.writing("claim", |data, now| Some(Ok(claim(data, &request, now)))).await
    }

    async fn claim_shares(&self, request: ShareRequest) -> Result<Claimed, StoreError> {
        self.writing("claim_shares", |data, now| {
            let mut room: Vec<usize> = request.shares.iter().map(|share| share.limit).collect();
            let share_of = |row: &WorkRow| {
                request.shares.iter().position(|share| share.takes(&row.definition, row.kind, &row.step))
            };
            let asked = (request.lease, request.limit, request.takes_over);
            Some(Ok(claim_where(data, asked, now, &mut room, share_of)))
        })
        .await
    }

    async fn renew(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.for_each("renew", work, |row, now| row.lease = Some(HeldLease::new(lease, now))).await
    }

    async fn begin(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.for_each("begin", work, |row, now| {
            // A row that waits was not begun by an owner that vanished.
            row.recovered &= !row.waits();
            row.waiting = None;
            row.lease = Some(HeldLease::new(lease, now));
        })
        .await
    }

    async fn release_work(&self, work: &[WorkRef]) -> Result<Vec<bool>, StoreError> {
        self.for_each("release_work", work, |row, _| row.release()).await
    }

    async fn release_unbegun(&self, owner: MemberId) -> Result<u64, StoreError> {
        self.writing("release_unbegun", |data, _| {
            let is_unbegun = |row: &WorkRow| row.waits() && row.lease.is_some_and(|lease| lease.owner == owner);
            let unbegun = data.work.iter().filter(|(id, row)| is_unbegun(row) && !is_locked(data, **id));
            let unbegun: Vec<WorkId> = unbegun.map(|(id, _)| *id).collect();
            for id in &unbegun {
                if let Some(row) = data.work.get_mut(id) {
                    row.release();
                }
            }
            Some(Ok(unbegun.len() as u64))
        })
        .await
    }

    async fn begin_attempt(&self, work: WorkRef, attempt: u32) -> Result<bool, StoreError> {
        let answers = self.for_each("begin_attempt", &[work], |row, _| row.attempts = attempt).await?;
        Ok(answers == [true])
    }

    async fn report(
        &self,
        work: WorkRef,
        number: u64,
        progress: &[u8],
        lease: Option<Lease>,
    ) -> Result<bool, StoreError> {
        self.writing("report", |data, now| {
            if is_locked(data, work.id) {
                return None;
            }
            let is_last = |row: &&mut WorkRow| row.reported.as_ref().is_none_or(|last| last.number <= number);
            let Some(row) = data.held_work(work).filter(is_last) else { return Some(Ok(false)) };
            row.reported = Some(Reported { number, at: now, progress: progress.to_vec() });
            if let Some(lease) = lease {
                row.lease = Some(HeldLease::new(lease, now));
            }
            Some(Ok(true))
        })
        .await
    }

    async fn note_late(&self, work: WorkId, output: &[u8]) -> Result<bool, StoreError> {
        self.writing("note_late", |data, _| {
            if is_locked(data, work) {
                return None;
            }
            let row = data.work.get_mut(&work);
            // Two calls of one step key have one effect outside, so the first report is kept.
            Some(Ok(row.map(|row| row.late.get_or_insert_with(|| output.to_vec())).is_some()))
        })
        .await
    }

    async fn backlog(&self) -> Result<(u64, Option<Duration>), StoreError> {
        self.reading("backlog", |data, now| {
            let waits = |(_, id): &&(Timestamp, WorkId)| is_free(data, *id, now);
            let rows = data.due.iter().filter(waits).count() as u64;
            let oldest = data.due.iter().find(waits).map(|(due_at, _)| *due_at);
            (rows, oldest.filter(|due_at| *due_at <= now).map(|due_at| now.since(due_at)))
        })
        .await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.reading("now", |_, now| now).await
    }

    async fn unknown_work(&self, known: &[DefinitionId]) -> Result<Vec<(DefinitionId, u64)>, StoreError> {
        self.reading("unknown_work", |data, _| {
            let unknown = data.work.values().filter(|row| row.message.is_none()).map(|row| &row.definition);
            let unknown = unknown.filter(|definition| !known.contains(definition));
            let mut counts = std::collections::BTreeMap::<DefinitionId, u64>::new();
            for definition in unknown {
                *counts.entry(definition.clone()).or_default() += 1;
            }
            counts.into_iter().collect()
        })
        .await
    }
}

impl MemoryStore {
    /// Writes to the rows that still have the given epoch, once no transaction holds any of them.
    async fn for_each(
        &self,
        operation: &'static str,
        work: &[WorkRef],
        write: impl Fn(&mut WorkRow, Timestamp) + Send + Sync,
    ) -> Result<Vec<bool>, StoreError> {
        self.writing(operation, |data, now| {
            if work.iter().any(|work| is_locked(data, work.id)) {
                return None;
            }
            let one = |work: &WorkRef| data.held_work(*work).map(|row| write(row, now)).is_some();
            Some(Ok(work.iter().map(one).collect()))
        })
        .await
    }
}
