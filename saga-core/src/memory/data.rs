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
pub(super) struct Data {
    pub(super) ids: i64,
    pub(super) definitions: BTreeMap<DefinitionId, StoredDefinition>,
    pub(super) sagas: BTreeMap<SagaId, SagaData>,
    pub(super) keys: QuickMap<(Tenant, Key), SagaId>,
    /// Sub-sagas and hosted steps, by their keys.
    pub(super) below: BTreeMap<(Tenant, Key), SagaId>,
    /// The records of a saga have the order in which they were inserted.
    pub(super) records: QuickMap<(Tenant, Key), Vec<StepRecord>>,
    pub(super) work: BTreeMap<WorkId, WorkRow>,
    /// The work rows by their due time.
    pub(super) due: BTreeSet<(Timestamp, WorkId)>,
    pub(super) members: LiveMembers,
    pub(super) outbox: OutboxTable,
    /// The ids that were received, with the time and the row that keeps the message.
    pub(super) received: BTreeMap<MessageId, (Timestamp, WorkId)>,
    pub(super) dead_letters: DeadLetterTable,
    pub(super) requests: RequestTable,
    /// What operators did, in the order of the commits.
    pub(super) audit_log: Vec<(Timestamp, HistoryEntry)>,
    /// When the time of ended sagas is over.
    pub(super) expiring: BTreeSet<(Timestamp, SagaId)>,
    pub(super) maintenance: MaintenanceLease,
    pub(super) table: MemoryTable,
    pub(super) semantic_locks: LockTable,
    pub(super) locks: Locks,
}

/// A saga with its history and its work rows.
#[derive(Debug)]
pub(super) struct SagaData {
    pub(super) row: SagaRow,
    pub(super) history: Vec<(Timestamp, HistoryEntry)>,
    pub(super) work: BTreeSet<WorkId>,
    /// When its time is over, if it has ended and is not kept for ever.
    pub(super) dated: Option<Dated>,
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

    /// The records of a saga without those of items.
    pub(super) fn records_of_steps(&self, tenant: &Tenant, key: &Key) -> Vec<StepRecord> {
        let records = self.records.get(&(tenant.clone(), key.clone())).map(Vec::as_slice).unwrap_or_default();
        let is_of_step = |record: &&StepRecord| record.step.item().is_none_or(|item| item == 0);
        let mut records: Vec<_> = records.iter().filter(is_of_step).cloned().collect();
        records.sort_by_key(|record| record.position);
        records
    }

    /// A saga with its history and its work, and still without its records.
    pub(super) fn with_work(&self, saga: &SagaData, now: Timestamp) -> SagaWithSteps {
        let work = saga.work.iter().filter_map(|id| Some(WorkStatus::from((*id, self.work.get(id)?))));
        SagaWithSteps {
            saga: saga.row.clone(),
            records: Vec::new(),
            history: saga.history.clone(),
            work: work.collect(),
            read_at: now,
        }
    }

    pub(super) fn saga_of(&self, tenant: &Tenant, key: &Key) -> Option<&SagaData> {
        self.sagas.get(self.keys.get(&(tenant.clone(), key.clone()))?)
    }

    /// The row, if it still has that epoch.
    pub(super) fn held_work(&mut self, work: WorkRef) -> Option<&mut WorkRow> {
        self.work.get_mut(&work.id).filter(|row| row.epoch == work.epoch)
    }

    pub(super) fn insert_saga(&mut self, saga: NewSaga, now: Timestamp) {
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

    pub(super) fn insert_work(&mut self, new: NewWork, now: Timestamp) {
        if let Some(saga) = self.sagas.get_mut(&new.saga) {
            saga.work.insert(new.id);
        }
        let (id, row) = (new.id, WorkRow::of_command(new, now));
        self.due.insert((row.due_at, id));
        self.work.insert(id, row);
    }

    /// Keeps a message in a row of its own, whether or not its id was received before.
    pub(super) fn insert_message(&mut self, id: WorkId, message: Message, lease: Option<Lease>, now: Timestamp) {
        self.received.insert(message.id, (now, id));
        self.due.insert((now, id));
        self.work.insert(id, WorkRow::of_message(message, lease, now));
    }

    pub(super) fn delete_work(&mut self, id: WorkId) {
        let Some(row) = self.work.remove(&id) else { return };
        self.due.remove(&(row.due_at, id));
        if let Some(saga) = self.sagas.get_mut(&row.saga) {
            saga.work.remove(&id);
        }
    }
}
