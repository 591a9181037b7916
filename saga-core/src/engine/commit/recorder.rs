//! Recording changes, many in one commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::context::EngineContext;
use crate::engine::store_calls::{Batcher, LockConflict, LockRetry, RecordError, Request, catch_panic};
use crate::store::{Applied, Changes, SagaId, Store, StoreErrorKind};

/// How many changes one commit carries at most.
pub(crate) const GROUP_MAX: usize = 64;

/// Records what was decided outside of step transactions: the outcomes of calls, failed attempts, operators' actions.
pub(crate) struct Recorder<S: Store> {
    ctx: Arc<EngineContext<S>>,
    calls: Batcher<Changes, Recorded>,
    apart: LockRetry,
}

type Recorded = Result<Applied, RecordError>;

type Group<R> = Vec<Request<Changes, R>>;

impl<S: Store> Recorder<S> {
    pub(crate) fn new(ctx: Arc<EngineContext<S>>) -> Self {
        let apart = LockRetry::new(&ctx.lifecycle, &ctx.env);
        Self { ctx, calls: Batcher::new(), apart }
    }

    /// Applies changes, together with those of others.
    pub(crate) async fn record(&self, changes: Changes) -> Recorded {
        self.calls.call(changes).await.unwrap_or_else(|| Err(RecordError::ended()))
    }

    /// Applies changes that have nothing to do with each other, in as few commits as they fit into.
    pub(crate) async fn record_all(&self, changes: Vec<Changes>) -> Vec<Recorded> {
        let answers = self.calls.call_all(changes).await;
        answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(RecordError::ended()))).collect()
    }
}

/// A slice with two changes of one saga is refused by every store, since the second rests on the first.
fn one_of_each_saga<R>(group: Group<R>) -> (Group<R>, Group<R>) {
    let mut sagas: BTreeSet<SagaId> = BTreeSet::new();
    group.into_iter().partition(|request| request.call.saga.as_ref().is_none_or(|saga| sagas.insert(saga.id)))
}

impl<S: Store> Recorder<S> {
    /// Answers what was not recorded when the runtime stopped.
    pub(crate) fn close(&self) {
        self.calls.close();
    }

    pub(crate) async fn serve(self: Arc<Self>) {
        self.calls.serve(&self.ctx.lifecycle.stopped, GROUP_MAX, |group| self.record_group(group)).await;
    }

    async fn record_group(self: &Arc<Self>, mut group: Vec<Request<Changes, Recorded>>) {
        while !group.is_empty() {
            let (now, later) = one_of_each_saga(group);
            group = later;
            let apart = self.apart.clone();
            apart.make(self, now, |this, group| async move { this.record_at_once(group).await }).await;
        }
    }

    /// Records these in one commit. What waits for a lock comes back: nothing of it was recorded.
    async fn record_at_once(
        self: Arc<Self>,
        group: Vec<Request<Changes, Recorded>>,
    ) -> Result<(), LockConflict<Request<Changes, Recorded>>> {
        let changes = group.iter().map(|request| request.call.clone()).collect();
        match catch_panic("record", self.ctx.store.record(changes)).await {
            Ok(applied) => {
                self.ctx.health.store_works("record");
                for (request, applied) in group.into_iter().zip(applied) {
                    request.answer(Ok(applied));
                }
            }
            Err(error) if error.kind() == StoreErrorKind::Conflict => return Err(LockConflict { group, error }),
            Err(error) => {
                self.ctx.health.store_failed("record", &error);
                for request in group {
                    request.answer(Err((&error).into()));
                }
            }
        }
        Ok(())
    }
}
