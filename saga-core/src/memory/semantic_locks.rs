//! The semantic locks of the store.

use async_trait::async_trait;

use super::MemoryStore;
use super::clock::Moment;
use super::data::Data;
use crate::store::{
    LockAnswer, LockFilter, LockRequest, SemanticLocks, StoreError, StoredLock, Timestamp, Unlock, WorkId,
};

#[async_trait]
impl SemanticLocks for MemoryStore {
    async fn ask_for_locks(&self, requests: Vec<LockRequest>) -> Result<Vec<LockAnswer>, StoreError> {
        self.writing("ask_for_locks", |data, now| {
            Some(Ok(requests.iter().map(|request| ask(data, request.clone(), now)).collect()))
        })
        .await
    }

    async fn locks(&self, filter: &LockFilter) -> Result<Vec<StoredLock>, StoreError> {
        self.reading("locks", |data, _| data.semantic_locks.list(filter)).await
    }
}

fn ask(data: &mut Data, request: LockRequest, now: Timestamp) -> LockAnswer {
    let work = request.work;
    if data.held_work(work).is_none() {
        return LockAnswer::Gone;
    }
    let (answer, woken) = data.semantic_locks.ask(request, now);
    if let LockAnswer::Waits(left) = &answer {
        set_due(data, work.id, now.plus(*left));
        if let Some(row) = data.work.get_mut(&work.id) {
            row.lease = None;
        }
    }
    wake(data, woken, now);
    answer
}

/// Ends locks in the commit that the data is written in.
pub(super) fn unlock(data: &mut Data, unlocks: &[Unlock], now: Timestamp) {
    if unlocks.is_empty() {
        return;
    }
    let woken = data.semantic_locks.unlock(unlocks, now);
    wake(data, woken, now);
}

fn wake(data: &mut Data, woken: Vec<WorkId>, now: Timestamp) {
    for work in woken {
        set_due(data, work, now);
    }
}

fn set_due(data: &mut Data, work: WorkId, due_at: Timestamp) {
    let Some(row) = data.work.get_mut(&work) else { return };
    data.due.remove(&(row.due_at, work));
    row.due_at = due_at;
    data.due.insert((due_at, work));
}
