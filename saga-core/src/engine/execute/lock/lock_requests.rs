//! Asks the store for locks, for many sagas in one commit.

use std::sync::Arc;

use crate::engine::context::EngineContext;
use crate::engine::store_calls::{Batcher, LockConflict, LockRetry, RecordError, Request, StoreCalls, catch_panic};
use crate::store::{LockAnswer, LockRequest, Store, StoreErrorKind};

/// How many requests one commit carries at most.
const GROUP_MAX: usize = 64;

type Asked = Result<LockAnswer, RecordError>;

/// What the store answered.
pub(super) struct LockAnswers {
    pub(super) answers: Vec<LockAnswer>,
    /// Whether an earlier answer did not arrive. It may have been that a request waits, which freed its work row.
    pub(super) asked_again: bool,
}

/// Asks the store for locks.
pub(crate) struct LockRequests<S: Store> {
    ctx: Arc<EngineContext<S>>,
    store_calls: Arc<StoreCalls<S>>,
    calls: Batcher<LockRequest, Asked>,
    apart: LockRetry,
}

impl<S: Store> LockRequests<S> {
    pub(crate) fn new(ctx: Arc<EngineContext<S>>, store_calls: &Arc<StoreCalls<S>>) -> Self {
        let apart = LockRetry::new(&ctx.lifecycle, &ctx.env);
        Self { ctx, store_calls: Arc::clone(store_calls), calls: Batcher::new(), apart }
    }

    /// Asks for a lock, together with other sagas. `None` if the runtime ends first.
    pub(crate) async fn ask(&self, request: &LockRequest) -> Option<LockAnswer> {
        self.ask_all(std::slice::from_ref(request)).await?.answers.pop()
    }

    /// Asks for locks, and again until the store has answered all: the same request has the same answer. `None` if the runtime
    /// ends first.
    pub(super) async fn ask_all(&self, requests: &[LockRequest]) -> Option<LockAnswers> {
        let (mut backoff, mut asked_again) = (self.store_calls.backoff(0), false);
        loop {
            let answers = self.calls.call_all(requests.to_vec()).await;
            if let Some(answers) = answers.into_iter().map(|answer| answer?.ok()).collect() {
                return Some(LockAnswers { answers, asked_again });
            }
            asked_again = true;
            if self.ctx.lifecycle.has_stopped() {
                return None;
            }
            self.store_calls.pause_for_store(&mut backoff).await;
        }
    }

    pub(crate) async fn serve(self: Arc<Self>) {
        self.calls.serve(&self.ctx.lifecycle.stopped, GROUP_MAX, |group| self.ask_group(group)).await;
    }

    async fn ask_group(self: &Arc<Self>, group: Vec<Request<LockRequest, Asked>>) {
        let apart = self.apart.clone();
        apart.make(self, group, |this, group| async move { this.ask_at_once(group).await }).await;
    }

    /// Asks in one commit. Requests that met a lock of the database come back: none of them was made.
    async fn ask_at_once(
        self: Arc<Self>,
        group: Vec<Request<LockRequest, Asked>>,
    ) -> Result<(), LockConflict<Request<LockRequest, Asked>>> {
        let requests = group.iter().map(|request| request.call.clone()).collect();
        match catch_panic("ask_for_locks", self.ctx.store.ask_for_locks(requests)).await {
            Ok(answers) => {
                self.ctx.health.store_works("ask_for_locks");
                for (request, answer) in group.into_iter().zip(answers) {
                    request.answer(Ok(answer));
                }
            }
            Err(error) if error.kind() == StoreErrorKind::Conflict => return Err(LockConflict { group, error }),
            Err(error) => {
                self.ctx.health.store_failed("ask_for_locks", &error);
                for request in group {
                    request.answer(Err((&error).into()));
                }
            }
        }
        Ok(())
    }
}
