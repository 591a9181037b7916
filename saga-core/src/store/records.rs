//! The duty of keeping step records, and of writing what was decided.

use async_trait::async_trait;

use super::{Applied, Changes, StepRecord, StoreError};
use crate::key::{Key, StepId, Tenant};

/// Keeping step records, and writing what was decided.
///
/// # Contract
/// - `S-REC-1` Each [`Changes`] of a [`record`](Records::record) is applied whole or not at all, and answered on its own; one that misses does not hinder the others of the call.
/// - `S-REC-2` Changes with an [`Advance`](super::Advance) apply only when the saga's version is the expected one; else [`Miss::Saga`](super::Miss::Saga) carries the saga as it is.
/// - `S-REC-3` Of two writers with the same expected version exactly one is applied.
/// - `S-REC-4` A finished or postponed work row must exist with its epoch; else [`Miss::Work`](super::Miss::Work). The lease does not matter, the epoch does (G7).
/// - `S-REC-5` A record is inserted only where there is none; else [`Miss::Record`](super::Miss::Record) (G2).
/// - `S-REC-6` A slice with two changes of one saga is refused with the kind `Misuse`, and nothing is applied.
/// - `S-REC-7` When several things miss at once, the answer is the first of: work row, late success, record, saga.
/// - `S-REC-8` Messages are visible to the relay only when the changes they came with are committed (G4).
/// - `S-REC-9` When the call fails with class `Unknown`, each of the changes was applied whole or not at all; a repeated call finds out which.
/// - `S-REC-10` A saga that changes start is inserted with them as [`start`](super::Sagas::start) inserts one; where its key is taken, nothing of the changes is written, and [`Miss::Saga`](super::Miss::Saga) carries the saga that has it. The records and the commands of the same changes may belong to it.
/// - `S-REC-11` A withdrawn work row is deleted whatever its epoch and its lease; one that is gone is no miss. A row that a transaction holds is waited for as `S-REC-15` says.
/// - `S-REC-13` A command that was [`tried`](super::NewWork::tried) is inserted as a row that was postponed after that attempt: with its attempts, its error, and `retrying since` this statement.
/// - `S-REC-14` [`records_of_steps`](Records::records_of_steps) leaves out the records of items, `step#1` and on, and of nothing else that was done; so do the records that a claim brings.
/// - `S-REC-12` Letters are buried as [`bury`](super::DeadLetters::bury) does, in the same commit (G8).
/// - `S-REC-15` A [`record`](Records::record) does not wait long for what an open transaction holds, be it a row or the key of a saga: within a second it fails with the kind `Conflict`, and nothing of the call is applied. Many callers share a call, and the engine tries the one that waits by itself.
#[async_trait]
pub trait Records: Send + Sync {
    /// Applies changes; answers in the order of the request.
    async fn record(&self, changes: Vec<Changes>) -> Result<Vec<Applied>, StoreError>;

    /// The record under a step key.
    async fn record_of(&self, tenant: &Tenant, key: &Key, step: &StepId) -> Result<Option<StepRecord>, StoreError>;

    /// The records of a saga, by position.
    async fn records_of(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError>;

    /// The records of a saga but those of items, by position: of a step that is done for each item of a list that of the
    /// step, and that of the list, `step#0`. Those of undos may be missing.
    async fn records_of_steps(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        let mut records = self.records_of(tenant, key).await?;
        records.retain(|record| record.step.item().is_none_or(|item| item == 0));
        Ok(records)
    }
}
