//! How long statements wait for locks.

use std::time::Duration;

use crate::fault_injection::Mutant;
use crate::store::PostgresStore;

/// How long a statement waits for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockWait {
    /// As long as a batch of steps does: others wait for the same commit.
    Short,
    /// As long as was said where its transaction began.
    AsInTransaction,
}

impl PostgresStore {
    /// A row for the `FROM` of a statement, which limits how long its transaction waits for locks. It needs no message of
    /// its own, and nothing has to be set back: the setting ends with the transaction, also where that is the statement.
    pub(crate) fn short_wait(&self) -> String {
        let limit = if self.is_mutant(Mutant::WaitsForLocksWithoutLimit) {
            0
        } else {
            millis(self.shared().options.batch_lock_timeout)
        };
        format!("(SELECT set_config('lock_timeout', '{limit}', true) AS waits OFFSET 0) short")
    }
}

/// A duration as the server's settings take it: nought would mean for ever.
pub(crate) fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX).max(1)
}
