//! Takes semantic locks: a saga that does not get one leaves its work row to the commit that hands the lock over.

use super::builtin_steps::BuiltinSteps;
use crate::engine::decide::{lock_request, lock_result};
use crate::engine::instance::{AttemptResult, NextSlot, NextWork, WorkItem};
use crate::machine::{Ending, Next};
use crate::saga::LockWait;
use crate::store::{LockAnswer, Store};

impl<S: Store> BuiltinSteps<S> {
    /// Asks for the lock of the step, and records what is answered. A saga that waits takes nothing of this process.
    pub(super) async fn take_lock(&self, mut command: WorkItem<S>, wait: LockWait, next_ids: i64) {
        let asked = match lock_request(&command, wait) {
            Ok(request) => {
                let Some(answer) = self.locks.ask(&request).await else { return };
                if let LockAnswer::Waits(left) = answer {
                    return self.records.committer.scheduler.announce_work(left);
                }
                Ok((request, answer))
            }
            Err(problem) => Err(problem),
        };
        let Some((attempted, next)) = lock_result(&self.records.decider, &command, asked) else { return };
        if !self.record_with_step(&mut command, &attempted, &next, next_ids).await {
            self.records.record_attempt(command, attempted, next, next_ids).await;
        }
    }

    /// Records that the saga has the lock by the transaction of the step behind it, if that is known to be quick. Answers whether it
    /// was recorded, as far as this process knows.
    async fn record_with_step(
        &self,
        command: &mut WorkItem<S>,
        attempted: &AttemptResult,
        next: &Next,
        next_ids: i64,
    ) -> bool {
        if attempted.ending != Ending::Done {
            return false;
        }
        let next_work = NextWork { ids: next_ids, slot: NextSlot::after(command) };
        let mut prepared = self.records.decider.decide_attempt(command, next, &attempted.findings, next_work);
        let Some(step) = &mut prepared.successor else { return false };
        if step.slot.is_none() {
            // It inherits the slot. If it leaves the lock to be recorded alone, the step gets another one.
            step.slot = command.slot.take();
        }
        if !self.inline_steps.takes_decision(&prepared) {
            command.slot = command.slot.take().or_else(|| prepared.successor?.slot);
            return false;
        }
        self.inline_steps.commit_with_step(prepared, command.claim()).await.is_ok()
    }
}
