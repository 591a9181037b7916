//! The duty of keeping what definitions are, and of moving sagas from one version to another.

use async_trait::async_trait;

use super::{Applied, DefinitionId, HistoryEntry, NewRecord, SagaId, StoreError, WorkId};
use crate::key::{Key, StepId, Tenant};

/// A definition as a process has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDefinition {
    /// Its name and version.
    pub id: DefinitionId,
    /// The digest of its shape.
    pub digest: [u8; 32],
    /// Its shape, as JSON.
    pub shape: String,
}

/// A definition as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDefinition {
    /// Its name and version.
    pub id: DefinitionId,
    /// The digest of its shape.
    pub digest: [u8; 32],
    /// Its shape, as JSON; nothing where only the digest is known, from a saga.
    pub shape: Option<String>,
}

/// A saga moves to another version of its definition.
#[derive(Debug, Clone)]
pub struct SagaMigration {
    /// The saga.
    pub saga: SagaId,
    /// Whose saga it is.
    pub tenant: Tenant,
    /// The saga's key.
    pub key: Key,
    /// The version of the row that the move was decided on. The new one is `expected + 1`.
    pub expected: u64,
    /// The definition that it has from now on.
    pub definition: DefinitionId,
    /// The digest of that definition's shape.
    pub digest: [u8; 32],
    /// The machine's state, in the steps of that definition.
    pub state: Vec<u8>,
    /// Step records that get another name, another output, or an input.
    pub rewritten: Vec<RewrittenRecord>,
    /// Step records that are inserted: of steps that the saga went past.
    pub records: Vec<NewRecord>,
    /// Work rows that are deleted: they say nothing any more. One that is gone is no miss.
    pub withdrawn: Vec<WorkId>,
    /// What is kept for who asks what happened.
    pub history: Vec<HistoryEntry>,
}

/// A step record that gets another name, another output, or an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenRecord {
    /// The step as it was called; there must be a record of it.
    pub from: StepId,
    /// The step as it is called from now on.
    pub to: StepId,
    /// The output that it gets; nothing where it keeps its own.
    pub output: Option<Vec<u8>>,
    /// The input that it gets; nothing where it keeps its own.
    pub input: Option<Vec<u8>>,
}

/// Keeping what definitions are, and moving sagas from one version to another.
///
/// # Contract
/// - `S-DEF-1` [`register`](Definitions::register) keeps every definition of which nothing is kept, and answers in the order of the request what is kept then. Of several that register one definition at once, one is kept, and all of them are answered with it.
/// - `S-DEF-2` A definition that is kept with another digest stays as it is kept where a saga was ever started with it, and is answered so; otherwise the new one takes its place. Where nothing is kept, but a saga that has not ended has another digest, nothing is kept, and the answer has that digest and no shape.
/// - `S-DEF-3` [`definitions`](Definitions::definitions) lists what is kept with a shape, by name and version.
/// - `S-DEF-4` [`migrate`](Definitions::migrate) moves a saga whole or not at all, and only when its version is the expected one; else [`Miss::Saga`](super::Miss::Saga) carries the saga as it is. Its status stays.
/// - `S-DEF-5` Each work row of the saga must be free, and in nobody's transaction; else [`Miss::Work`](super::Miss::Work). It belongs to the new definition then, under the next epoch, and is in all else what it was (G7).
/// - `S-DEF-6` Records get their new names, outputs and inputs, and new ones are inserted, in the same commit. A record that is not there, or one that is there already under the new name, is a [`Miss::Record`](super::Miss::Record).
/// - `S-DEF-7` Withdrawn work rows are deleted in the same commit.
#[async_trait]
pub trait Definitions: Send + Sync {
    /// Registers definitions that a process knows.
    async fn register(&self, definitions: Vec<NewDefinition>) -> Result<Vec<StoredDefinition>, StoreError>;

    /// The definitions that are kept.
    async fn definitions(&self) -> Result<Vec<StoredDefinition>, StoreError>;

    /// Moves a saga to another version of its definition.
    async fn migrate(&self, moved: SagaMigration) -> Result<Applied, StoreError>;
}
