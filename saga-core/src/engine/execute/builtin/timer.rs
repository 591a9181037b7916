//! Ends the waits of sleeps and signals: the work row of a wait becomes due when the wait ends.

use std::time::Duration;

use super::builtin_steps::BuiltinSteps;
use crate::engine::commit::changes;
use crate::engine::instance::WorkItem;
use crate::saga::{Idle, LONGEST};
use crate::store::{Postponed, Store, StoreError, Timestamp};

impl<S: Store> BuiltinSteps<S> {
    /// Handles the claimed row of a wait.
    pub(crate) async fn end_wait(&self, command: WorkItem<S>, idle: &Idle, next_ids: i64) {
        let left = match idle {
            Idle::Lock(wait) => return self.take_lock(command, *wait, next_ids).await,
            Idle::For(_) | Idle::Mapped | Idle::Signal(_) => Ok(Duration::ZERO),
            Idle::Until => self.time_until(&command).await,
        };
        match left {
            Ok(Duration::ZERO) => self.awake(command, next_ids).await,
            Ok(left) => self.sleep_on(command, left).await,
            Err(error) => {
                self.ctx.health.store_failed("now", &error);
                self.records.committer.scheduler.release(&[command.work]).await;
            }
        }
    }

    /// The time until the moment that is stored with the command.
    async fn time_until(&self, command: &WorkItem<S>) -> Result<Duration, StoreError> {
        // The engine wrote it, so it can be read.
        let moment: Timestamp = serde_json::from_slice(command.saga.input_of(command.step_index())).unwrap_or_default();
        let now = self.ctx.store.now().await?;
        self.ctx.health.store_works("now");
        let left = Duration::from_micros(u64::try_from(moment.0.saturating_sub(now.0)).unwrap_or_default());
        // A longer wait sleeps again when it wakes.
        Ok(left.min(LONGEST))
    }

    async fn sleep_on(&self, command: WorkItem<S>, due_in: Duration) {
        let postponed = Postponed { work: command.work, due_in, attempts: 0, in_doubt: false, error: None };
        match self.records.committer.recorder.record(changes::postpone(postponed)).await {
            Ok(Ok(())) => self.records.committer.scheduler.announce_work(due_in),
            // Another process has the command.
            Ok(Err(_)) => {}
            Err(_) => self.records.committer.scheduler.release(&[command.work]).await,
        }
    }

    async fn awake(&self, command: WorkItem<S>, next_ids: i64) {
        let Some((attempted, next)) = self.records.decider.wait_result(&command) else { return };
        self.records.record_attempt(command, attempted, next, next_ids).await;
    }
}
