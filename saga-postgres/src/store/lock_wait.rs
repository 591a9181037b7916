//! How long statements wait for locks.

use std::time::Duration;

use crate::fault_injection::Mutant;
use crate::store::store::PostgresStore;

/// How long a statement waits for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockWait {
    /// As long as a batch of steps: other calls wait for the same commit.
    Short,
    /// As long as its transaction was set to wait.
    AsInTransaction,
}

impl PostgresStore {
    /// A row for the `FROM` of a statement, which limits how long its transaction waits for locks. It needs no message
    /// of its own and no reset: the setting ends with the transaction, even if that is only this statement.
    pub(crate) fn short_wait(&self) -> String {
        let limit = if self.is_mutant(Mutant::WaitsForLocksWithoutLimit) {
            0
        } else {
            millis(self.shared().options.batch_lock_timeout)
        };
        format!("(SELECT set_config('lock_timeout', '{limit}', true) AS waits OFFSET 0) short")
    }
}

/// A duration as a server setting, at least 1: zero would be without a limit.
pub(crate) fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX).max(1)
}
