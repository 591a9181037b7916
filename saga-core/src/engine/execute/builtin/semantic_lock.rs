//! Takes semantic locks: a saga that does not get one leaves its work row to the commit that hands the lock over.

use super::builtin_steps::BuiltinSteps;
use crate::engine::decide::{lock_request, lock_result};
use crate::engine::instance::WorkItem;
use crate::saga::LockWait;
use crate::store::{LockAnswer, Store};

impl<S: Store> BuiltinSteps<S> {
    /// Asks for the lock of the step, and records what is answered. A saga that waits takes nothing of this process.
    pub(super) async fn take_lock(&self, command: WorkItem<S>, wait: LockWait, next_ids: i64) {
        let asked = match lock_request(&command, wait) {
            Ok(request) => {
                let Some(answer) = self.locks.ask(&request).await else { return };
                if let LockAnswer::Waits(left) = answer {
                    self.records.committer.scheduler.announce_work(left);
                    return self.records.committer.hurry_called_off(&[command]).await;
                }
                Ok((request, answer))
            }
            Err(problem) => Err(problem),
        };
        let Some((attempted, next)) = lock_result(&self.records.decider, &command, asked) else { return };
        self.records.record_attempt(command, attempted, next, next_ids).await;
    }
}
