//! Committing decisions.

use std::sync::Arc;

use tokio::sync::Notify;

use super::recorder::Recorder;
use super::related::RelatedSagas;
use crate::engine::context::EngineContext;
use crate::engine::instance::WaitingCache;
use crate::engine::outbox::Outbox;
use crate::engine::outcome::Waiters;
use crate::engine::schedule::Scheduler;
use crate::engine::store_calls::StoreCalls;
use crate::store::{Applied, RetryClass, Store};

/// Records decisions, and does what follows from a commit.
pub(crate) struct Committer<S: Store> {
    pub(crate) ctx: Arc<EngineContext<S>>,
    pub(crate) store_calls: Arc<StoreCalls<S>>,
    pub(crate) scheduler: Arc<Scheduler<S>>,
    pub(crate) outbox: Arc<Outbox<S>>,
    pub(crate) recorder: Arc<Recorder<S>>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) waiting_cache: WaitingCache<S>,
    /// Woken when there may be messages in the inbox.
    pub(crate) inbox_filled: Arc<Notify>,
    pub(super) related: Arc<RelatedSagas<S>>,
}

impl<S: Store> Committer<S> {
    pub(crate) fn new(
        scheduler: Arc<Scheduler<S>>,
        outbox: Arc<Outbox<S>>,
        recorder: Arc<Recorder<S>>,
        waiters: Arc<Waiters>,
    ) -> Self {
        let (ctx, store_calls) = (Arc::clone(&scheduler.ctx), Arc::clone(&scheduler.store_calls));
        let related = Arc::new(RelatedSagas::new(Arc::clone(&scheduler)));
        let (waiting_cache, inbox_filled) = (WaitingCache::new(), Arc::new(Notify::new()));
        Self { ctx, store_calls, scheduler, outbox, recorder, waiters, waiting_cache, inbox_filled, related }
    }
}

impl<S: Store> Committer<S> {
    /// Changes that an operator or a claim decided on, with what follows.
    pub(crate) async fn commit_decision(
        self: &Arc<Self>,
        mut prepared: crate::engine::instance::PendingCommit<S>,
    ) -> Result<Applied, crate::engine::store_calls::RecordError> {
        let changes = prepared.take_changes();
        match self.recorder.record(changes).await {
            Ok(applied) => {
                if applied.is_ok() {
                    self.after_commit(prepared, None);
                }
                Ok(applied)
            }
            Err(error) => {
                if let (RetryClass::Unknown, Some(successor)) = (error.class, &prepared.successor) {
                    // What was committed after all is leased to this process, which does not know it.
                    self.scheduler.release(&[successor.work]).await;
                }
                Err(error)
            }
        }
    }
}
