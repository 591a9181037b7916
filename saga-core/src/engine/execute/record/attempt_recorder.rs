//! Records the result of an attempt in the commit of the decision that follows from it.

use std::sync::Arc;

use crate::engine::commit::Committer;
use crate::engine::context::EngineContext;
use crate::engine::decide::{Decider, late_success};
use crate::engine::instance::{AttemptResult, NextSlot, NextWork, SagaInstance, WorkItem};
use crate::engine::store_calls::or_unreadable;
use crate::machine::Next;
use crate::store::{Miss, RetryClass, StepRecord, Store, StoreError};

/// Records the results of attempts, and tries again until the store has them.
pub(crate) struct AttemptRecorder<S: Store> {
    pub(crate) ctx: Arc<EngineContext<S>>,
    pub(crate) committer: Arc<Committer<S>>,
    pub(crate) decider: Arc<Decider<S>>,
}

impl<S: Store> AttemptRecorder<S> {
    pub(crate) fn new(committer: Arc<Committer<S>>, decider: Arc<Decider<S>>) -> Self {
        Self { ctx: Arc::clone(&committer.ctx), committer, decider }
    }
}

impl<S: Store> AttemptRecorder<S> {
    /// Records the result of an attempt. The commit is retried as often as needed; the handler is not called again.
    pub(crate) async fn record_attempt(
        self: &Arc<Self>,
        mut command: WorkItem<S>,
        mut attempted: AttemptResult,
        mut next: Next,
        next_ids: i64,
    ) {
        let next_work = NextWork { ids: next_ids, slot: NextSlot::after(&command) };
        let mut in_doubt = Vec::new();
        let mut backoff = self.committer.store_calls.backoff(0);
        loop {
            let mut prepared = self.decider.decide_attempt(&command, &next, &attempted.findings, next_work);
            let changes = prepared.take_changes();
            let successor = prepared.successor.as_ref().map(|successor| successor.work);
            match self.committer.recorder.record(changes).await {
                Ok(Ok(())) => {
                    self.committer.after_commit(prepared, command.slot.take());
                    if matches!(next, Next::Again { .. }) {
                        self.committer.hurry_called_off(&[command]).await;
                    }
                    return;
                }
                Ok(Err(Miss::Saga(row))) => {
                    let Some(records) = self.records_of_others(&command.saga).await else { return };
                    let records = records.map_err(|error| error.to_string());
                    if let Err(problem) = records.and_then(|records| command.saga.refresh(&row, records)) {
                        return self.committer.block_unreadable(&row, &problem, Some(command.work)).await;
                    }
                    // The signal that the step waits for may have arrived.
                    if let Some(ended) = self.decider.wait_result(&command) {
                        (attempted, next) = ended;
                    }
                }
                Ok(Err(Miss::Late { output, .. })) => {
                    attempted = late_success::attempted(&command, &output);
                    next = self.decider.after(&command, &attempted);
                }
                Ok(Err(Miss::Work(_) | Miss::Record(_) | Miss::NoSaga(_))) => {
                    // Either this change was recorded by a commit whose answer was lost, or another process has the
                    // command, or the saga was deleted.
                    self.committer.scheduler.release(&in_doubt).await;
                    return self.lost_lease(command, attempted).await;
                }
                Err(error) => {
                    if error.class == RetryClass::Unknown {
                        in_doubt.extend(successor);
                    }
                    if self.ctx.lifecycle.has_stopped() {
                        return;
                    }
                    self.committer.store_calls.pause_for_store(&mut backoff).await;
                }
            }
        }
    }

    /// The step records, read after the newer row of the saga: other branches, or a late success, may have added or changed some.
    /// `None` if the runtime stops first.
    async fn records_of_others(&self, saga: &SagaInstance<S>) -> Option<Result<Vec<StepRecord>, StoreError>> {
        let read = || or_unreadable(self.ctx.store.records_of_steps(&saga.tenant, &saga.key));
        self.committer.store_calls.retry_store_to_the_end("records_of_steps", read).await
    }
}
