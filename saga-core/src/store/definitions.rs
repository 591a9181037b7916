//! Definitions, and the migration of sagas between their versions.

use async_trait::async_trait;

use super::{Applied, DefinitionId, HistoryEntry, NewRecord, SagaId, SagaRow, StoreError, WorkId};
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
#[async_trait]
pub trait Definitions: Send + Sync {
    /// Registers definitions that a process knows.
    async fn register(&self, definitions: Vec<NewDefinition>) -> Result<Vec<StoredDefinition>, StoreError>;

    /// The stored definitions.
    async fn definitions(&self) -> Result<Vec<StoredDefinition>, StoreError>;

    /// Migrates a saga to another version of its definition.
    async fn migrate(&self, moved: SagaMigration) -> Result<Applied, StoreError>;
}
