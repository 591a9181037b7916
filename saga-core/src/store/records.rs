//! Writing decisions, and reading step records.

use async_trait::async_trait;

use super::{Applied, Changes, StepRecord, StoreError};
use crate::key::{Key, StepId, Tenant};

/// Writes decisions, and reads step records.
///
/// # Contract
/// - `S-REC-1` Each [`Changes`] of a [`record`](Records::record) is applied whole or not at all, and has its own answer. A miss does not prevent the other changes of the call.
/// - `S-REC-2` Changes with an [`Advance`](super::Advance) apply only when the saga's version is the expected one; otherwise [`Miss::Saga`](super::Miss::Saga) carries the saga as it is, or, where it was deleted, the answer is [`Miss::NoSaga`](super::Miss::NoSaga).
/// - `S-REC-3` Of two writers with the same expected version exactly one is applied.
/// - `S-REC-4` A finished or postponed work row must exist with its epoch; otherwise the answer is [`Miss::Work`](super::Miss::Work). The epoch matters, the lease does not (G7).
/// - `S-REC-5` A record is inserted only where there is none; otherwise the answer is [`Miss::Record`](super::Miss::Record) (G2).
/// - `S-REC-6` A call with two changes of one saga is refused with the kind `Misuse`, and nothing is applied.
/// - `S-REC-7` When several conditions miss at once, the answer is the first of: work row, late success, record, saga.
/// - `S-REC-8` The relay sees messages only when the changes that they belong to are committed (G4).
/// - `S-REC-9` When the call fails with class `Unknown`, each of the changes was applied whole or not at all; a repeated call finds out which.
/// - `S-REC-10` A saga that changes start is inserted with them as [`start`](super::Sagas::start) inserts one. Where its key is taken, nothing of the changes is written, and [`Miss::Saga`](super::Miss::Saga) carries the saga that has the key. The records and the commands of the same changes may belong to the new saga.
/// - `S-REC-11` A withdrawn work row is deleted whatever its epoch and its lease; a row that is gone is no miss. The call waits for a row that a transaction holds as `S-REC-15` says.
/// - `S-REC-13` A command that was [`tried`](super::NewWork::tried) is inserted as a row that was postponed after that attempt: with its attempts, its error, and `retrying since` this statement.
/// - `S-REC-14` [`records_of_steps`](Records::records_of_steps) leaves out the records of items, `step#1` and up, and no other record of a done step; the records that a claim brings are the same.
/// - `S-REC-12` Dead letters are inserted as [`add_dead_letters`](super::DeadLetters::add_dead_letters) inserts them, in the same commit (G8).
/// - `S-REC-15` A [`record`](Records::record) does not wait long for a row or a saga key that an open transaction holds: within a second it fails with the kind `Conflict`, and nothing of the call is applied. Many callers share one call; the engine tries the changes that wait again in a call of their own.
#[async_trait]
pub trait Records: Send + Sync {
    /// Applies changes; answers in the order of the request.
    async fn record(&self, changes: Vec<Changes>) -> Result<Vec<Applied>, StoreError>;

    /// The record under a step key.
    async fn record_of(&self, tenant: &Tenant, key: &Key, step: &StepId) -> Result<Option<StepRecord>, StoreError>;

    /// The records of a saga, by position.
    async fn records_of(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError>;

    /// The records of a saga without those of items, by position. A step that runs once per item has the step's own
    /// record and that of the list, `step#0`. Records of undos may be missing.
    async fn records_of_steps(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        let mut records = self.records_of(tenant, key).await?;
        records.retain(|record| record.step.item().is_none_or(|item| item == 0));
        Ok(records)
    }
}
