//! The semantic locks of the store.

use async_trait::async_trait;

use crate::memory::MemoryStore;
use crate::memory::clock::Moment;
use crate::memory::statements::taken_locks::is_held;
use crate::memory::statements::unlock::{set_due, unlock, wake};
use crate::memory::tables::data::Data;
use crate::store::{LockAnswer, LockFilter, LockRequest, SemanticLocks, StoreError, StoredLock, Timestamp};

#[async_trait]
impl SemanticLocks for MemoryStore {
    async fn ask_for_locks(&self, requests: Vec<LockRequest>) -> Result<Vec<LockAnswer>, StoreError> {
        self.writing_shortly("ask_for_locks", |data, now| {
            if requests.iter().any(|request| is_held(data, request)) {
                return None;
            }
            Some(Ok(requests.iter().map(|request| ask(data, request.clone(), now)).collect()))
        })
        .await
    }

    async fn end_abandoned_locks(&self, limit: usize) -> Result<u64, StoreError> {
        self.writing("end_abandoned_locks", |data, now| {
            let abandoned = data.semantic_locks.abandoned(|work| !data.work.contains_key(&work), limit);
            unlock(data, &abandoned, now);
            Some(Ok(abandoned.len() as u64))
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
