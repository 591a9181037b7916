//! The ends of semantic locks, and the work rows that fall due with them.

use crate::memory::tables::data::Data;
use crate::store::{Timestamp, Unlock, WorkId};

/// Ends locks in the commit that the data is written in.
pub(in crate::memory) fn unlock(data: &mut Data, unlocks: &[Unlock], now: Timestamp) {
    if unlocks.is_empty() {
        return;
    }
    let woken = data.semantic_locks.unlock(unlocks, now);
    wake(data, woken, now);
}

pub(in crate::memory) fn wake(data: &mut Data, woken: Vec<WorkId>, now: Timestamp) {
    for work in woken {
        set_due(data, work, now);
    }
}

pub(in crate::memory) fn set_due(data: &mut Data, work: WorkId, due_at: Timestamp) {
    let Some(row) = data.work.get_mut(&work) else { return };
    data.due.remove(&(row.due_at, work));
    row.due_at = due_at;
    data.due.insert((due_at, work));
}
