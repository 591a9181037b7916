use std::collections::BTreeMap;

use async_trait::async_trait;

use super::MemoryStore;
use super::apply::insert_record;
use super::data::Data;
use super::locks::Lock;
use super::work::is_free;
use crate::key::StepId;
use crate::store::{
    Applied, Definitions, Miss, NewDefinition, SagaMigration, StoreError, StoredDefinition, Timestamp, WorkId,
};

#[async_trait]
impl Definitions for MemoryStore {
    async fn register(&self, definitions: Vec<NewDefinition>) -> Result<Vec<StoredDefinition>, StoreError> {
        self.writing("register", |data, _| {
            Some(Ok(definitions.iter().map(|definition| register(data, definition)).collect()))
        })
        .await
    }

    async fn definitions(&self) -> Result<Vec<StoredDefinition>, StoreError> {
        self.reading("definitions", |data, _| data.definitions.values().cloned().collect()).await
    }

    async fn migrate(&self, moved: SagaMigration) -> Result<Applied, StoreError> {
        let mut moved = Some(moved);
        self.writing("migrate", |data, now| {
            let wanted = moved.as_ref()?;
            if is_written(data, wanted) {
                return None;
            }
            if let Some(miss) = miss(data, wanted, now) {
                return Some(Ok(Err(miss)));
            }
            migrate(data, moved.take()?, now);
            Some(Ok(Ok(())))
        })
        .await
    }
}

fn register(data: &mut Data, new: &NewDefinition) -> StoredDefinition {
    let started = || data.sagas.values().map(|saga| &saga.row).filter(|row| row.definition == new.id);
    let stays = match data.definitions.get(&new.id) {
        Some(kept) if kept.digest == new.digest || started().next().is_some() => Some(kept.clone()),
        Some(_) => None,
        None => {
            let other = started().find(|row| !row.status.is_ended() && row.digest != new.digest);
            other.map(|row| StoredDefinition { id: new.id.clone(), digest: row.digest, shape: None })
        }
    };
    stays.unwrap_or_else(|| {
        let kept = StoredDefinition { id: new.id.clone(), digest: new.digest, shape: Some(new.shape.clone()) };
        data.definitions.insert(new.id.clone(), kept.clone());
        kept
    })
}

/// Whether a transaction is about to write what the move writes: it is waited for. One that holds a command of the saga
/// is not, since it runs a step.
fn is_written(data: &Data, moved: &SagaMigration) -> bool {
    data.locks.holder(&Lock::Saga(moved.saga), None).is_some()
}

fn miss(data: &Data, moved: &SagaMigration, now: Timestamp) -> Option<Miss> {
    let saga = data.sagas.get(&moved.saga)?;
    if let Some(held) = saga.work.iter().find(|work| !is_free(data, **work, now)) {
        return Some(Miss::Work(*held));
    }
    let has = |step: &StepId| data.has_record(&moved.tenant, &moved.key, step);
    let is_rewritten = |step: &StepId| moved.rewritten.iter().any(|record| record.from == *step);
    let gone = moved.rewritten.iter().find(|record| !has(&record.from)).map(|record| &record.from);
    let names = moved.rewritten.iter().filter(|record| record.from != record.to).map(|record| &record.to);
    let mut names = names.chain(moved.records.iter().map(|record| &record.step));
    if let Some(step) = gone.or_else(|| names.find(|step| has(step) && !is_rewritten(step))) {
        return Some(Miss::Record(step.clone()));
    }
    (saga.row.version != moved.expected).then(|| Miss::Saga(Box::new(saga.row.clone())))
}

fn migrate(data: &mut Data, moved: SagaMigration, now: Timestamp) {
    for id in moved.withdrawn {
        data.delete_work(id);
    }
    let Some(saga) = data.sagas.get_mut(&moved.saga) else { return };
    let row = &mut saga.row;
    (row.definition, row.digest, row.state) = (moved.definition.clone(), moved.digest, moved.state);
    (row.version, row.advanced_at) = (moved.expected + 1, now);
    saga.history.extend(moved.history.into_iter().map(|entry| (now, entry)));
    let work: Vec<WorkId> = saga.work.iter().copied().collect();
    for id in work {
        if let Some(row) = data.work.get_mut(&id) {
            row.definition = moved.definition.clone();
            row.waiting = row.waits().then_some(row.epoch + 1);
            row.epoch += 1;
        }
    }
    let rewritten: BTreeMap<_, _> = moved.rewritten.into_iter().map(|record| (record.from.clone(), record)).collect();
    let records = data.records.entry((moved.tenant, moved.key)).or_default();
    for record in records.iter_mut() {
        if let Some(change) = rewritten.get(&record.step) {
            record.step = change.to.clone();
            record.output = change.output.clone().or_else(|| record.output.take());
            record.input = change.input.clone().or_else(|| record.input.take());
        }
    }
    for new in moved.records {
        insert_record(data, new, now);
    }
}
