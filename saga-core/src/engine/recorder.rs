use std::collections::BTreeSet;
use std::sync::Arc;

use super::apart::{LockConflict, LockRetry};
use super::asking::catch_panic;
use super::grouped::{Batcher, Request};
use super::shared::EngineContext;
use crate::store::{Applied, Changes, RetryClass, SagaId, Store, StoreError, StoreErrorKind};

/// How many changes one commit carries at most.
const GROUP_MAX: usize = 64;

/// Records what was decided outside of step transactions: the outcomes of calls, failed attempts, operators' actions.
#[derive(Debug)]
pub(super) struct Recorder {
    calls: Batcher<Changes, Recorded>,
    apart: LockRetry,
}

type Recorded = Result<Applied, RecordError>;
type Group<R> = Vec<Request<Changes, R>>;

/// A commit of several changes that failed. The error is everybody's.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{operation}: {detail}")]
pub(super) struct RecordError {
    pub(super) kind: StoreErrorKind,
    pub(super) class: RetryClass,
    pub(super) operation: &'static str,
    pub(super) detail: String,
}

impl RecordError {
    /// Nobody answered, so what was to be written may be there.
    pub(super) fn unanswered(operation: &'static str, detail: &str) -> Self {
        let (kind, class) = (StoreErrorKind::UnknownCommit, RetryClass::Unknown);
        Self { kind, class, operation, detail: detail.to_owned() }
    }

    fn ended() -> Self {
        Self::unanswered("record", "the runtime has ended, or the task that records panicked")
    }
}

impl From<&StoreError> for RecordError {
    fn from(error: &StoreError) -> Self {
        let (kind, class, operation) = (error.kind(), error.class(), error.operation());
        Self { kind, class, operation, detail: error.detail().to_owned() }
    }
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self { calls: Batcher::new(), apart: LockRetry::new() }
    }

    /// Applies changes, together with those of others.
    pub(super) async fn record(&self, changes: Changes) -> Recorded {
        self.calls.call(changes).await.unwrap_or_else(|| Err(RecordError::ended()))
    }

    /// Applies changes that have nothing to do with each other, in as few commits as they fit into.
    pub(super) async fn record_all(&self, changes: Vec<Changes>) -> Vec<Recorded> {
        let answers = self.calls.call_all(changes).await;
        answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(RecordError::ended()))).collect()
    }
}

impl<S: Store> EngineContext<S> {
    pub(super) async fn serve_recorder(self: &Arc<Self>) {
        self.recorder.calls.serve(GROUP_MAX, |group| self.record_group(group)).await;
    }

    async fn record_group(self: &Arc<Self>, mut group: Vec<Request<Changes, Recorded>>) {
        while !group.is_empty() {
            let (now, later) = one_of_each_saga(group);
            group = later;
            let apart = self.recorder.apart.clone();
            apart.make(self, now, |shared, group| async move { shared.record_at_once(group).await }).await;
        }
    }

    /// Records these in one commit. What waits for a lock comes back: nothing of it was recorded.
    async fn record_at_once(
        self: Arc<Self>,
        group: Vec<Request<Changes, Recorded>>,
    ) -> Result<(), LockConflict<Request<Changes, Recorded>>> {
        let changes = group.iter().map(|request| request.call.clone()).collect();
        match catch_panic("record", self.store.record(changes)).await {
            Ok(applied) => {
                self.store_works("record");
                for (request, applied) in group.into_iter().zip(applied) {
                    request.answer(Ok(applied));
                }
            }
            Err(error) if error.kind() == StoreErrorKind::Conflict => return Err(LockConflict { group, error }),
            Err(error) => {
                self.store_failed("record", &error);
                for request in group {
                    request.answer(Err((&error).into()));
                }
            }
        }
        Ok(())
    }
}

/// A slice with two changes of one saga is refused by every store, since the second rests on the first.
fn one_of_each_saga<R>(group: Group<R>) -> (Group<R>, Group<R>) {
    let mut sagas: BTreeSet<SagaId> = BTreeSet::new();
    group.into_iter().partition(|request| request.call.saga.as_ref().is_none_or(|saga| sagas.insert(saga.id)))
}
