//! The sagas of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use async_trait::async_trait;

use crate::key::{Key, Tenant};
use crate::memory::MemoryStore;
use crate::memory::tables::data::Data;
use crate::memory::tables::locks::Lock;
use crate::memory::tables::work_row::WorkRow;
use crate::store::{
    AuditFilter, AuditRow, NewSaga, SagaFilter, SagaId, SagaProgress, SagaRow, SagaWithSteps, Sagas, Started, Status,
    StoreError, StoreErrorKind, Timestamp, WorkId, WorkKind,
};

#[async_trait]
impl Sagas for MemoryStore {
    async fn start(&self, sagas: Vec<NewSaga>) -> Result<Vec<Started>, StoreError> {
        let mut sagas = sagas;
        self.writing_shortly("start", |data, now| {
            let is_held =
                |saga: &NewSaga| data.locks.holder(&Lock::Key(saga.tenant.clone(), saga.key.clone()), None).is_some();
            if sagas.iter().any(is_held) {
                return None;
            }
            Some(start_all(data, std::mem::take(&mut sagas), now))
        })
        .await
    }

    async fn saga(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaRow>, StoreError> {
        self.reading("saga", |data, _| data.saga_of(tenant, key).map(|saga| saga.row.clone())).await
    }

    async fn saga_with_steps(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaWithSteps>, StoreError> {
        self.reading("saga_with_steps", |data, now| {
            let saga = data.saga_of(tenant, key)?;
            Some(SagaWithSteps { records: data.records_of(tenant, key), ..data.with_work(saga, now) })
        })
        .await
    }

    async fn sagas_by_id(&self, ids: &[SagaId]) -> Result<Vec<SagaRow>, StoreError> {
        self.reading("sagas_by_id", |data, _| {
            ids.iter().filter_map(|id| Some(data.sagas.get(id)?.row.clone())).collect()
        })
        .await
    }

    async fn progress(&self, ids: &[SagaId]) -> Result<Vec<SagaProgress>, StoreError> {
        self.reading("progress", |data, _| {
            let standing = |id: &SagaId| {
                let row = &data.sagas.get(id)?.row;
                Some(SagaProgress { saga: *id, status: row.status, version: row.version })
            };
            ids.iter().filter_map(standing).collect()
        })
        .await
    }

    async fn list(&self, filter: &SagaFilter) -> Result<Vec<SagaRow>, StoreError> {
        self.reading("list", |data, now| {
            let from = filter.after.map_or(Bound::Unbounded, Bound::Excluded);
            let is_failing = |work: &BTreeSet<WorkId>| {
                let mut rows = work.iter().filter_map(|id| data.work.get(id));
                filter
                    .failing
                    .is_none_or(|failing| rows.any(|row| failing.is_met(row.attempts, row.retrying_since, now)))
            };
            let sagas = data.sagas.range((from, Bound::Unbounded)).map(|(_, saga)| saga);
            let sagas = sagas.filter(|saga| passes(&saga.row, filter) && is_failing(&saga.work));
            sagas.map(|saga| saga.row.clone()).take(filter.limit).collect()
        })
        .await
    }

    async fn count(&self, tenant: &Tenant) -> Result<Vec<(Status, u64)>, StoreError> {
        self.reading("count", |data, _| {
            let mut counts: BTreeMap<Status, u64> = BTreeMap::new();
            for saga in data.sagas.values().filter(|saga| saga.row.tenant == *tenant) {
                *counts.entry(saga.row.status).or_default() += 1;
            }
            counts.into_iter().collect()
        })
        .await
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<SagaId>, StoreError> {
        self.reading("orphaned", |data, _| {
            let goes_on = |status| matches!(status, Status::Running | Status::Compensating);
            let is_due = |id| data.work.get(id).is_some_and(|row: &WorkRow| row.kind != WorkKind::Deadline);
            let waits_for_nothing =
                data.sagas.values().filter(|saga| goes_on(saga.row.status) && !saga.work.iter().any(is_due));
            waits_for_nothing.map(|saga| saga.row.id).take(limit).collect()
        })
        .await
    }

    async fn audit_log(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        self.reading("audit_log", |data, _| {
            let numbers = 1..=i64::try_from(data.audit_log.len()).unwrap_or(i64::MAX);
            let acts = numbers.rev().zip(data.audit_log.iter().rev());
            let acts = acts.filter(|(number, _)| filter.before.is_none_or(|before| *number < before));
            let acts = acts.filter_map(|(number, (at, entry))| {
                let saga = &data.sagas.get(&entry.saga)?.row;
                let act = || AuditRow { number, key: saga.key.clone(), at: *at, entry: entry.clone() };
                (saga.tenant == filter.tenant).then(act)
            });
            acts.take(filter.limit).collect()
        })
        .await
    }
}

fn start_all(data: &mut Data, sagas: Vec<NewSaga>, now: Timestamp) -> Result<Vec<Started>, StoreError> {
    let is_used = |saga: &&NewSaga| {
        let is_known = data.keys.contains_key(&(saga.tenant.clone(), saga.key.clone()));
        !is_known
            && (data.sagas.contains_key(&saga.id)
                || saga.commands.iter().any(|command| data.work.contains_key(&command.id)))
    };
    if let Some(saga) = sagas.iter().find(is_used) {
        let detail = format!("saga {} or one of its commands has an id that is used", saga.id.0);
        return Err(StoreError::new(StoreErrorKind::Misuse, "start", detail));
    }
    let start = |saga: NewSaga| {
        if let Some(known) = data.saga_of(&saga.tenant, &saga.key) {
            return Started::AlreadyExists(Box::new(known.row.clone()));
        }
        data.insert_saga(saga, now);
        Started::New
    };
    Ok(sagas.into_iter().map(start).collect())
}

fn passes(row: &SagaRow, filter: &SagaFilter) -> bool {
    row.tenant == filter.tenant
        && filter.status.is_none_or(|status| row.status == status)
        && !(filter.top_level && row.key.as_str().contains('>'))
        && filter.definition.as_ref().is_none_or(|name| *row.definition.name == **name)
}
