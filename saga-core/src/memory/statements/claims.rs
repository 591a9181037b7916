//! Claims of work.

use std::collections::BTreeSet;

use crate::memory::clock::Moment;
use crate::memory::tables::data::Data;
use crate::memory::tables::locks::Lock;
use crate::memory::tables::work_row::{HeldLease, WorkRow};
use crate::store::{ClaimRequest, Claimed, ClaimedWork, Lease, Timestamp, WorkId};

pub(in crate::memory) fn claim(data: &mut Data, request: &ClaimRequest, now: Timestamp) -> Claimed {
    let is_known = |row: &WorkRow| request.definitions.contains(&row.definition).then_some(0);
    let asked = (request.lease, request.limit, request.takes_over);
    claim_where(data, asked, now, &mut [usize::MAX], is_known)
}

/// Claims rows that belong to a share with room, as `share_of` says.
pub(in crate::memory) fn claim_where(
    data: &mut Data,
    (lease, limit, takes_over): (Lease, usize, bool),
    now: Timestamp,
    room: &mut [usize],
    share_of: impl Fn(&WorkRow) -> Option<usize>,
) -> Claimed {
    let mut claimed = Claimed::default();
    // A process that was stopped for longer than its `ttl` would take over the rows that it still works on.
    let takes_over = takes_over && data.members.is_alive(lease.owner, now);
    let mut recorded = Vec::new();
    let mut sagas = BTreeSet::new();
    for (due_at, id) in &data.due {
        let Some(row) = data.work.get(id) else { continue };
        if row.message.is_some() || (row.lease.is_some() && !takes_over) {
            continue;
        }
        let Some(share) = share_of(row) else { continue };
        if !is_free(data, *id, now) {
            continue;
        }
        if *due_at > now || (claimed.work.len() >= limit && room[share] > 0) {
            claimed.next_due_in = Some(due_at.since(now));
            break;
        }
        if data.has_record(&row.tenant, &row.key, &row.step) {
            recorded.push(*id);
            continue;
        }
        if room[share] == 0 {
            continue;
        }
        room[share] -= 1;
        sagas.insert(row.saga);
        let retrying_for = row.retrying_since.map(|since| now.since(since));
        claimed.work.push(ClaimedWork { retrying_for, ..ClaimedWork::from((*id, row)) });
    }
    for id in recorded {
        data.delete_work(id);
    }
    for taken in &mut claimed.work {
        let Some(row) = data.work.get_mut(&taken.work.id) else { continue };
        // Only a lease that its owner did not release is still on a free row: that owner vanished.
        let is_clean = row.waits() || (row.lease.is_none() && !row.recovered);
        row.recovered |= row.lease.is_some();
        row.epoch += 1;
        row.waiting = is_clean.then_some(row.epoch);
        row.lease = Some(HeldLease::new(lease, now));
        taken.work.epoch = row.epoch;
        (taken.recovered, taken.began) = (row.recovered, !is_clean);
    }
    for saga in sagas.iter().filter_map(|id| data.sagas.get(id)) {
        claimed.sagas.push((saga.row.clone(), data.records_of_steps(&saga.row.tenant, &saga.row.key)));
    }
    claimed
}

pub(in crate::memory) fn is_free(data: &Data, id: WorkId, now: Timestamp) -> bool {
    let lease = data.work.get(&id).and_then(|row| row.lease);
    lease.is_none_or(|lease| !data.members.holds(lease, now)) && !is_locked(data, id)
}

pub(in crate::memory) fn is_locked(data: &Data, id: WorkId) -> bool {
    data.locks.holder(&Lock::Work(id), None).is_some()
}
