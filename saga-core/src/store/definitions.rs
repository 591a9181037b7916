//! Definitions, and the migration of sagas between their versions.

use async_trait::async_trait;

use super::{Applied, DefinitionId, HistoryEntry, NewRecord, SagaId, SagaRow, SagaWithSteps, StoreError, WorkId};
use crate::key::{Key, StepId, Tenant};

/// A definition as a process knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDefinition {
    /// Its name and version.
    pub id: DefinitionId,
    /// The digest of its shape.
    pub digest: [u8; 32],
    /// Its shape, as JSON.
    pub shape: String,
}

/// A definition as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDefinition {
    /// Its name and version.
    pub id: DefinitionId,
    /// The digest of its shape.
    pub digest: [u8; 32],
    /// Its shape, as JSON. `None` where only the digest is known, from a saga.
    pub shape: Option<String>,
}

/// The migration of one saga to another version of its definition.
#[derive(Debug, Clone)]
pub struct SagaMigration {
    /// The saga.
    pub saga: SagaId,
    /// The tenant of the saga.
    pub tenant: Tenant,
    /// The saga's key.
    pub key: Key,
    /// The row version that the migration was decided on. The new version is `expected + 1`.
    pub expected: u64,
    /// The definition that the saga belongs to afterwards.
    pub definition: DefinitionId,
    /// The digest of that definition's shape.
    pub digest: [u8; 32],
    /// The machine's state, with the steps of that definition.
    pub state: Vec<u8>,
    /// Step records that get another name, another output or another input.
    pub rewritten: Vec<RewrittenRecord>,
    /// Step records that are inserted for steps that the saga has passed.
    pub records: Vec<NewRecord>,
    /// Work rows that are deleted because the new definition does not need them. A row that is gone is no miss.
    pub withdrawn: Vec<WorkId>,
    /// Entries for the saga's history.
    pub history: Vec<HistoryEntry>,
}

impl SagaMigration {
    /// The migration of a saga as it is stored, so far without a state, records, rows or history.
    pub(crate) fn new(saga: &SagaRow, definition: &DefinitionId, digest: [u8; 32]) -> Self {
        Self {
            saga: saga.id,
            tenant: saga.tenant.clone(),
            key: saga.key.clone(),
            expected: saga.version,
            definition: definition.clone(),
            digest,
            state: Vec::new(),
            rewritten: Vec::new(),
            records: Vec::new(),
            withdrawn: Vec::new(),
            history: Vec::new(),
        }
    }
}

/// A step record that gets another name, another output or another input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenRecord {
    /// The present name of the step; there must be a record of it.
    pub from: StepId,
    /// The new name of the step.
    pub to: StepId,
    /// The new output. `None` keeps the present one.
    pub output: Option<Vec<u8>>,
    /// The new input. `None` keeps the present one.
    pub input: Option<Vec<u8>>,
}

/// At most `limit` of these sagas, each once and by id: half of them the oldest, half of them the newest.
pub fn oldest_and_newest(mut ids: Vec<SagaId>, limit: usize) -> Vec<SagaId> {
    ids.sort();
    ids.dedup();
    if ids.len() > limit {
        ids.drain(limit.div_ceil(2)..ids.len() - limit / 2);
    }
    ids
}

/// Stores definitions, and migrates sagas between their versions.
///
/// # Contract
/// - `S-DEF-1` [`register`](Definitions::register) stores every definition that is not stored yet, and answers in the order of the request what is stored then. When several callers register one definition at once, one of them stores it, and all of them get that answer.
/// - `S-DEF-2` A definition that is stored with another digest is kept where a saga was ever started with it, and the answer is the stored one; otherwise the new definition replaces it. Where none is stored, but a saga that has not ended has another digest, nothing is stored, and the answer has that digest and no shape.
/// - `S-DEF-3` [`definitions`](Definitions::definitions) lists the definitions that are stored with a shape, by name and version.
/// - `S-DEF-4` [`migrate`](Definitions::migrate) migrates a saga whole or not at all, and only when its version is the expected one; otherwise [`Miss::Saga`](super::Miss::Saga) carries the saga as it is. Its status stays.
/// - `S-DEF-5` Each work row of the saga must be free and held by no transaction; otherwise the answer is [`Miss::Work`](super::Miss::Work). The row then belongs to the new definition, under the next epoch, and is otherwise unchanged (G7).
/// - `S-DEF-6` Records get their new names, outputs and inputs, and new records are inserted, in the same commit. A record that does not exist, or that exists already under the new name, is a [`Miss::Record`](super::Miss::Record).
/// - `S-DEF-7` Withdrawn work rows are deleted in the same commit.
/// - `S-DEF-8` [`unfinished`](Definitions::unfinished) reads sagas of the given definitions, of any tenant, that are running, compensating or paused, by id: of each definition at most `limit`, and all if there are no more; otherwise those that [`oldest_and_newest`] chooses. Each comes with its work rows and with the records that [`records_of_steps`](super::Records::records_of_steps) gives, and without its history. Where very many sagas have not ended, a store may look at the 2,000 oldest and the 2,000 newest of each status only.
#[async_trait]
pub trait Definitions: Send + Sync {
    /// Registers definitions that a process knows.
    async fn register(&self, definitions: Vec<NewDefinition>) -> Result<Vec<StoredDefinition>, StoreError>;

    /// The stored definitions.
    async fn definitions(&self) -> Result<Vec<StoredDefinition>, StoreError>;

    /// A sample of the sagas of these definitions that go on without an operator. The engine asks once, when a process starts.
    async fn unfinished(&self, definitions: &[DefinitionId], limit: usize) -> Result<Vec<SagaWithSteps>, StoreError>;

    /// Migrates a saga to another version of its definition.
    async fn migrate(&self, moved: SagaMigration) -> Result<Applied, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::{SagaId, oldest_and_newest};

    #[test]
    fn a_sample_has_the_oldest_and_the_newest() {
        let chosen = |ids: &[i64], limit| -> Vec<i64> {
            oldest_and_newest(ids.iter().copied().map(SagaId).collect(), limit).into_iter().map(|id| id.0).collect()
        };
        assert_eq!(chosen(&[3, 1, 2, 3], 3), [1, 2, 3]);
        assert_eq!(chosen(&[5, 4, 3, 2, 1], 3), [1, 2, 5]);
        assert_eq!(chosen(&[5, 4, 3, 2, 1], 2), [1, 5]);
        assert_eq!(chosen(&[2, 1], 1), [1]);
        assert!(chosen(&[2, 1], 0).is_empty());
    }
}
