//! The migration of a saga to another version of its definition.

use std::collections::BTreeMap;

use super::changes::insert_record;
use super::claims::is_free;
use crate::key::StepId;
use crate::memory::tables::data::Data;
use crate::memory::tables::locks::Lock;
use crate::store::{Miss, SagaMigration, Timestamp, WorkId};

/// Whether a transaction is about to write the saga's row. The migration waits for it, but not for one that holds a
/// command of the saga, since that runs a step.
pub(in crate::memory) fn is_written(data: &Data, moved: &SagaMigration) -> bool {
    data.locks.holder(&Lock::Saga(moved.saga), None).is_some()
}

pub(in crate::memory) fn miss(data: &Data, moved: &SagaMigration, now: Timestamp) -> Option<Miss> {
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

pub(in crate::memory) fn migrate(data: &mut Data, moved: SagaMigration, now: Timestamp) {
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
