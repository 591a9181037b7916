//! A reference model of a store, for randomised histories: what each call must answer, with no regard to how it is kept.
//!
//! It knows no time: whatever is leased stays leased until its owner leaves, and what is due later is never due.

use std::collections::{BTreeMap, BTreeSet};

use saga_core::store::{MemberId, RecordedOutcome, SagaId, Status, WorkId, WorkRef};

use crate::sim::splitmix64;

/// A small generator of pseudo-random numbers (`SplitMix64`), the same for the same seed on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next sixty-four bits.
    pub(crate) fn next(&mut self) -> u64 {
        splitmix64(&mut self.0)
    }

    /// A number below the bound; 0 where the bound is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these, if there is one.
    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len())).cloned()
    }
}

/// What a model knows of a saga.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelSaga {
    pub(crate) status: Status,
    pub(crate) version: u64,
    pub(crate) records: BTreeMap<String, RecordedOutcome>,
}

/// What a model knows of a work row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelWork {
    pub(crate) saga: SagaId,
    pub(crate) step: String,
    pub(crate) epoch: u64,
    pub(crate) owner: Option<MemberId>,
    pub(crate) is_later: bool,
    pub(crate) attempts: u32,
    pub(crate) maybe: bool,
    pub(crate) suspect: bool,
    pub(crate) late: Option<Vec<u8>>,
}

/// What a change of a history does.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) saga: SagaId,
    pub(crate) expected: u64,
    pub(crate) status: Status,
    pub(crate) finished: Option<(WorkRef, bool)>,
    pub(crate) postponed: Option<(WorkRef, bool)>,
    pub(crate) record: Option<(String, RecordedOutcome)>,
    pub(crate) command: Option<(WorkId, String, Option<MemberId>, bool)>,
    pub(crate) messages: u64,
}

/// How a change must be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Applied,
    Work,
    Late,
    Record,
    Saga,
}

/// The whole store, as the model sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) sagas: BTreeMap<SagaId, ModelSaga>,
    pub(crate) work: BTreeMap<WorkId, ModelWork>,
    pub(crate) living: BTreeSet<MemberId>,
    pub(crate) messages: u64,
}

impl Model {
    pub(crate) fn start(&mut self, saga: SagaId, work: WorkId, step: &str) {
        let new = ModelSaga { status: Status::Running, version: 1, records: BTreeMap::new() };
        self.sagas.insert(saga, new);
        self.insert(saga, work, step, None, false);
    }

    fn insert(&mut self, saga: SagaId, work: WorkId, step: &str, owner: Option<MemberId>, is_later: bool) {
        let row = ModelWork {
            saga,
            step: step.into(),
            epoch: 1,
            owner,
            is_later,
            attempts: 0,
            maybe: false,
            suspect: false,
            late: None,
        };
        self.work.insert(work, row);
    }

    /// A claim may delete such a row instead of taking it, as soon as it meets it.
    pub(crate) fn has_record(&self, row: &ModelWork) -> bool {
        self.sagas.get(&row.saga).is_some_and(|saga| saga.records.contains_key(&row.step))
    }

    /// The rows that a claim for that member may take.
    pub(crate) fn claimable(&self, claimer: MemberId) -> BTreeSet<WorkId> {
        let takes_over = self.living.contains(&claimer);
        let is_free = |row: &ModelWork| row.owner.is_none_or(|owner| takes_over && !self.living.contains(&owner));
        let rows = self.work.iter().filter(|(_, row)| is_free(row) && !row.is_later && !self.has_record(row));
        rows.map(|(id, _)| *id).collect()
    }

    /// A claim took the row: what it must be like now.
    pub(crate) fn claim(&mut self, id: WorkId, owner: MemberId) -> Option<ModelWork> {
        let row = self.work.get_mut(&id)?;
        row.suspect |= row.owner.is_some();
        row.epoch += 1;
        row.owner = Some(owner);
        Some(row.clone())
    }

    pub(crate) fn held(&mut self, work: WorkRef) -> Option<&mut ModelWork> {
        self.work.get_mut(&work.id).filter(|row| row.epoch == work.epoch)
    }

    /// The current name of a row.
    pub(crate) fn name(&self, id: WorkId) -> Option<WorkRef> {
        self.work.get(&id).map(|row| WorkRef { id, epoch: row.epoch })
    }

    /// Applies a change, or says what is in its way.
    pub(crate) fn record(&mut self, change: &Change) -> Answer {
        let answer = self.answer(change);
        if answer == Answer::Applied {
            self.write(change);
        }
        answer
    }

    fn answer(&self, change: &Change) -> Answer {
        let touched = change.finished.map(|(work, _)| work).into_iter().chain(change.postponed.map(|(work, _)| work));
        for work in touched {
            if self.work.get(&work.id).is_none_or(|row| row.epoch != work.epoch) {
                return Answer::Work;
            }
        }
        if let Some((work, true)) = change.finished
            && self.work.get(&work.id).is_some_and(|row| row.late.is_some())
        {
            return Answer::Late;
        }
        let Some(saga) = self.sagas.get(&change.saga) else { return Answer::Saga };
        if change.record.as_ref().is_some_and(|(step, _)| saga.records.contains_key(step)) {
            return Answer::Record;
        }
        if saga.version == change.expected { Answer::Applied } else { Answer::Saga }
    }

    fn write(&mut self, change: &Change) {
        if let Some((work, _)) = change.finished {
            self.work.remove(&work.id);
        }
        if let Some((work, is_later)) = change.postponed
            && let Some(row) = self.work.get_mut(&work.id)
        {
            (row.owner, row.is_later, row.attempts, row.maybe) = (None, is_later, 9, true);
        }
        if let Some(saga) = self.sagas.get_mut(&change.saga) {
            (saga.status, saga.version) = (change.status, change.expected + 1);
            saga.records.extend(change.record.clone());
        }
        if let Some((id, step, owner, is_later)) = &change.command {
            self.insert(change.saga, *id, step, *owner, *is_later);
        }
        self.messages += change.messages;
    }
}
