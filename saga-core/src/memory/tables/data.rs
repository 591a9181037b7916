//! Everything that a store in memory keeps.

use std::collections::{BTreeMap, BTreeSet};

use super::dead_letter_table::DeadLetterTable;
use super::expiry::{Dated, MaintenanceLease};
use super::hashing::QuickMap;
use super::live_members::LiveMembers;
use super::lock_table::LockTable;
use super::locks::Locks;
use super::outbox_table::OutboxTable;
use super::request_table::RequestTable;
use super::table::MemoryTable;
use super::work_row::WorkRow;
use crate::key::{Key, StepId, Tenant};
use crate::store::{
    DefinitionId, HistoryEntry, Lease, Message, MessageId, NewSaga, NewWork, SagaId, SagaRow, SagaWithSteps,
    StepRecord, StoredDefinition, Timestamp, WorkId, WorkRef, WorkStatus,
};

/// All committed rows, and the locks. Collections that are iterated are ordered, so that two runs do the same.
#[derive(Debug, Default)]
pub(in crate::memory) struct Data {
    pub(in crate::memory) ids: i64,
    pub(in crate::memory) definitions: BTreeMap<DefinitionId, StoredDefinition>,
    pub(in crate::memory) sagas: BTreeMap<SagaId, SagaData>,
    pub(in crate::memory) keys: QuickMap<(Tenant, Key), SagaId>,
    /// Sub-sagas and hosted steps, by their keys.
    pub(in crate::memory) below: BTreeMap<(Tenant, Key), SagaId>,
    /// The records of a saga have the order in which they were inserted.
    pub(in crate::memory) records: QuickMap<(Tenant, Key), Vec<StepRecord>>,
    pub(in crate::memory) work: BTreeMap<WorkId, WorkRow>,
    /// The work rows by their due time.
    pub(in crate::memory) due: BTreeSet<(Timestamp, WorkId)>,
    pub(in crate::memory) members: LiveMembers,
    pub(in crate::memory) outbox: OutboxTable,
    /// The ids that were received, with the time and the row that keeps the message.
    pub(in crate::memory) received: BTreeMap<MessageId, (Timestamp, WorkId)>,
    pub(in crate::memory) dead_letters: DeadLetterTable,
    pub(in crate::memory) requests: RequestTable,
    /// What operators did, in the order of the commits.
    pub(in crate::memory) audit_log: Vec<(Timestamp, HistoryEntry)>,
    /// When the time of ended sagas is over.
    pub(in crate::memory) expiring: BTreeSet<(Timestamp, SagaId)>,
    pub(in crate::memory) maintenance: MaintenanceLease,
    pub(in crate::memory) table: MemoryTable,
    pub(in crate::memory) semantic_locks: LockTable,
    pub(in crate::memory) locks: Locks,
}

/// A saga with its history and its work rows.
#[derive(Debug)]
pub(in crate::memory) struct SagaData {
    pub(in crate::memory) row: SagaRow,
    pub(in crate::memory) history: Vec<(Timestamp, HistoryEntry)>,
    pub(in crate::memory) work: BTreeSet<WorkId>,
    /// When its time is over, if it has ended and is not kept for ever.
    pub(in crate::memory) dated: Option<Dated>,
}

impl Data {
    pub(in crate::memory) fn has_record(&self, tenant: &Tenant, key: &Key, step: &StepId) -> bool {
        self.record(tenant, key, step).is_some()
    }

    pub(in crate::memory) fn record(&self, tenant: &Tenant, key: &Key, step: &StepId) -> Option<&StepRecord> {
        self.records.get(&(tenant.clone(), key.clone()))?.iter().find(|record| record.step == *step)
    }

    /// The records of a saga, by position.
    pub(in crate::memory) fn records_of(&self, tenant: &Tenant, key: &Key) -> Vec<StepRecord> {
        let mut records = self.records.get(&(tenant.clone(), key.clone())).cloned().unwrap_or_default();
        records.sort_by_key(|record| record.position);
        records
    }

    /// The records of a saga without those of items.
    pub(in crate::memory) fn records_of_steps(&self, tenant: &Tenant, key: &Key) -> Vec<StepRecord> {
        let records = self.records.get(&(tenant.clone(), key.clone())).map(Vec::as_slice).unwrap_or_default();
        let is_of_step = |record: &&StepRecord| record.step.item().is_none_or(|item| item == 0);
        let mut records: Vec<_> = records.iter().filter(is_of_step).cloned().collect();
        records.sort_by_key(|record| record.position);
        records
    }

    /// A saga with its history and its work, and still without its records.
    pub(in crate::memory) fn with_work(&self, saga: &SagaData, now: Timestamp) -> SagaWithSteps {
        let work = saga.work.iter().filter_map(|id| Some(WorkStatus::from((*id, self.work.get(id)?))));
        SagaWithSteps {
            saga: saga.row.clone(),
            records: Vec::new(),
            history: saga.history.clone(),
            work: work.collect(),
            read_at: now,
        }
    }

    pub(in crate::memory) fn saga_of(&self, tenant: &Tenant, key: &Key) -> Option<&SagaData> {
        self.sagas.get(self.keys.get(&(tenant.clone(), key.clone()))?)
    }

    /// The row, if it still has that epoch.
    pub(in crate::memory) fn held_work(&mut self, work: WorkRef) -> Option<&mut WorkRow> {
        self.work.get_mut(&work.id).filter(|row| row.epoch == work.epoch)
    }

    pub(in crate::memory) fn insert_saga(&mut self, saga: NewSaga, now: Timestamp) {
        let row = SagaRow::started(&saga, now);
        let key = (row.tenant.clone(), row.key.clone());
        if row.key.as_str().contains('>') {
            self.below.insert(key.clone(), row.id);
        }
        self.keys.insert(key, row.id);
        let id = row.id;
        self.sagas.insert(id, SagaData { row, history: Vec::new(), work: BTreeSet::new(), dated: None });
        self.date(id, saga.expiry.as_deref(), now);
        for command in saga.commands {
            self.insert_work(command, now);
        }
    }

    pub(in crate::memory) fn insert_work(&mut self, new: NewWork, now: Timestamp) {
        if let Some(saga) = self.sagas.get_mut(&new.saga) {
            saga.work.insert(new.id);
        }
        let (id, row) = (new.id, WorkRow::of_command(new, now));
        self.due.insert((row.due_at, id));
        self.work.insert(id, row);
    }

    /// Keeps a message in a row of its own, whether or not its id was received before.
    pub(in crate::memory) fn insert_message(
        &mut self,
        id: WorkId,
        message: Message,
        lease: Option<Lease>,
        now: Timestamp,
    ) {
        self.received.insert(message.id, (now, id));
        self.due.insert((now, id));
        self.work.insert(id, WorkRow::of_message(message, lease, now));
    }

    pub(in crate::memory) fn delete_work(&mut self, id: WorkId) {
        let Some(row) = self.work.remove(&id) else { return };
        self.due.remove(&(row.due_at, id));
        if let Some(saga) = self.sagas.get_mut(&row.saga) {
            saga.work.remove(&id);
        }
    }
}
