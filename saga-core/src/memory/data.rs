use std::collections::{BTreeMap, BTreeSet};

use super::clock::Moment;
use super::conn::MemoryTable;
use super::hashing::QuickMap;
use super::inbox::Received;
use super::letters::Letters;
use super::locks::Locks;
use super::outbox::OutboxData;
use crate::key::{Key, StepId, Tenant};
use crate::store::{
    ClaimedWork, DefinitionId, HistoryEntry, Lease, MemberId, Message, NewSaga, NewWork, Reported, SagaId, SagaRow,
    StepRecord, StoredDefinition, Timestamp, WorkId, WorkKind, WorkRef, WorkStatus,
};

/// Everything that is committed, and who holds which row. What is ever gone through is ordered, so that two runs do the same.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) ids: i64,
    pub(super) definitions: BTreeMap<DefinitionId, StoredDefinition>,
    pub(super) sagas: BTreeMap<SagaId, SagaData>,
    pub(super) keys: QuickMap<(Tenant, Key), SagaId>,
    /// Those of a saga in the order in which they were inserted.
    pub(super) records: QuickMap<(Tenant, Key), Vec<StepRecord>>,
    pub(super) work: BTreeMap<WorkId, WorkRow>,
    /// The work rows by when they are due.
    pub(super) due: BTreeSet<(Timestamp, WorkId)>,
    pub(super) members: Living,
    pub(super) outbox: OutboxData,
    pub(super) received: Received,
    pub(super) letters: Letters,
    /// What people did, in the order in which it was written down.
    pub(super) acts: Vec<(Timestamp, HistoryEntry)>,
    pub(super) table: MemoryTable,
    pub(super) locks: Locks,
}

/// A saga with what hangs on it.
#[derive(Debug)]
pub(super) struct SagaData {
    pub(super) row: SagaRow,
    pub(super) history: Vec<(Timestamp, HistoryEntry)>,
    pub(super) work: BTreeSet<WorkId>,
}

/// A lease that was given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) owner: MemberId,
    pub(super) until: Timestamp,
}

impl Held {
    pub(super) fn new(lease: Lease, now: Timestamp) -> Self {
        Self { owner: lease.owner, until: now.plus(lease.ttl) }
    }
}

/// A row of `work`.
#[derive(Debug)]
pub(super) struct WorkRow {
    pub(super) kind: WorkKind,
    pub(super) saga: SagaId,
    pub(super) tenant: Tenant,
    pub(super) key: Key,
    pub(super) step: StepId,
    pub(super) definition: DefinitionId,
    pub(super) payload: Option<Vec<u8>>,
    pub(super) due_at: Timestamp,
    pub(super) epoch: u64,
    pub(super) lease: Option<Held>,
    pub(super) attempts: u32,
    pub(super) maybe: bool,
    pub(super) suspect: bool,
    /// The epoch under which nobody has begun the row yet, nor an owner that vanished before.
    pub(super) waiting: Option<u64>,
    pub(super) retrying_since: Option<Timestamp>,
    pub(super) error: Option<String>,
    pub(super) late: Option<Vec<u8>>,
    pub(super) reported: Option<Reported>,
    /// Set in a row that keeps a received message; it has no saga, no step and no definition.
    pub(super) message: Option<Message>,
}

/// The members and until when they live.
#[derive(Debug, Default)]
pub(super) struct Living {
    pub(super) until: BTreeMap<MemberId, Timestamp>,
    pub(super) joined: i64,
}

impl Living {
    pub(super) fn lives(&self, member: MemberId, now: Timestamp) -> bool {
        self.until.get(&member).is_some_and(|until| *until > now)
    }

    /// Whether a lease still keeps others away.
    pub(super) fn holds(&self, lease: Held, now: Timestamp) -> bool {
        lease.until > now && self.lives(lease.owner, now)
    }
}

impl Data {
    pub(super) fn has_record(&self, tenant: &Tenant, key: &Key, step: &StepId) -> bool {
        self.record(tenant, key, step).is_some()
    }

    pub(super) fn record(&self, tenant: &Tenant, key: &Key, step: &StepId) -> Option<&StepRecord> {
        self.records.get(&(tenant.clone(), key.clone()))?.iter().find(|record| record.step == *step)
    }

    /// The records of a saga, by position.
    pub(super) fn records_of(&self, tenant: &Tenant, key: &Key) -> Vec<StepRecord> {
        let mut records = self.records.get(&(tenant.clone(), key.clone())).cloned().unwrap_or_default();
        records.sort_by_key(|record| record.position);
        records
    }

    /// Without those of items.
    pub(super) fn records_of_steps(&self, tenant: &Tenant, key: &Key) -> Vec<StepRecord> {
        let records = self.records.get(&(tenant.clone(), key.clone())).map(Vec::as_slice).unwrap_or_default();
        let is_of_step = |record: &&StepRecord| record.step.item().is_none_or(|item| item == 0);
        let mut records: Vec<_> = records.iter().filter(is_of_step).cloned().collect();
        records.sort_by_key(|record| record.position);
        records
    }

    pub(super) fn saga_of(&self, tenant: &Tenant, key: &Key) -> Option<&SagaData> {
        self.sagas.get(self.keys.get(&(tenant.clone(), key.clone()))?)
    }

    /// The row, if it still has that epoch.
    pub(super) fn held_work(&mut self, work: WorkRef) -> Option<&mut WorkRow> {
        self.work.get_mut(&work.id).filter(|row| row.epoch == work.epoch)
    }

    pub(super) fn insert_saga(&mut self, saga: NewSaga, now: Timestamp) {
        let row = saga_row(&saga, now);
        self.keys.insert((row.tenant.clone(), row.key.clone()), row.id);
        self.sagas.insert(row.id, SagaData { row, history: Vec::new(), work: BTreeSet::new() });
        for command in saga.commands {
            self.insert_work(command, now);
        }
    }

    pub(super) fn insert_work(&mut self, new: NewWork, now: Timestamp) {
        let due_at = now.plus(new.due_in);
        self.due.insert((due_at, new.id));
        if let Some(saga) = self.sagas.get_mut(&new.saga) {
            saga.work.insert(new.id);
        }
        let row = WorkRow {
            kind: new.kind,
            saga: new.saga,
            tenant: new.tenant,
            key: new.key,
            step: new.step,
            definition: new.definition,
            payload: new.payload,
            due_at,
            epoch: 1,
            lease: new.lease.map(|lease| Held::new(lease, now)),
            attempts: new.tried.as_ref().map_or(0, |tried| tried.attempts),
            maybe: false,
            suspect: false,
            waiting: None,
            retrying_since: new.tried.is_some().then_some(now),
            error: new.tried.map(|tried| tried.error),
            late: None,
            reported: None,
            message: None,
        };
        self.work.insert(new.id, row);
    }

    pub(super) fn delete_work(&mut self, id: WorkId) {
        let Some(row) = self.work.remove(&id) else { return };
        self.due.remove(&(row.due_at, id));
        if let Some(saga) = self.sagas.get_mut(&row.saga) {
            saga.work.remove(&id);
        }
    }
}

impl WorkRow {
    /// Whether certainly nobody has begun it.
    pub(super) fn waits(&self) -> bool {
        self.waiting == Some(self.epoch)
    }

    pub(super) fn claimed(&self, id: WorkId, now: Timestamp) -> ClaimedWork {
        ClaimedWork {
            work: WorkRef { id, epoch: self.epoch },
            kind: self.kind,
            saga: self.saga,
            step: self.step.clone(),
            attempts: self.attempts,
            in_doubt: self.maybe,
            recovered: self.suspect,
            began: false,
            retrying_for: self.retrying_since.map(|since| now.since(since)),
            payload: self.payload.clone(),
            late: self.late.clone(),
            reported: self.reported.clone(),
        }
    }

    pub(super) fn status(&self, id: WorkId) -> WorkStatus {
        WorkStatus {
            work: WorkRef { id, epoch: self.epoch },
            kind: self.kind,
            step: self.step.clone(),
            attempts: self.attempts,
            in_doubt: self.maybe,
            due_at: self.due_at,
            owner: self.lease.map(|lease| lease.owner),
            retrying_since: self.retrying_since,
            error: self.error.clone(),
            payload: self.payload.clone(),
            reported: self.reported.clone(),
        }
    }
}

/// A new saga as it is stored.
pub(super) fn saga_row(saga: &NewSaga, now: Timestamp) -> SagaRow {
    SagaRow {
        id: saga.id,
        tenant: saga.tenant.clone(),
        key: saga.key.clone(),
        definition: saga.definition.clone(),
        digest: saga.digest,
        status: saga.status,
        version: 1,
        state: saga.state.clone(),
        input: saga.input.clone(),
        input_hash: saga.input_hash.clone(),
        started_at: now,
        advanced_at: now,
        ended_at: saga.status.is_ended().then_some(now),
    }
}
