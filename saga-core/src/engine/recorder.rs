use std::collections::BTreeSet;

use super::grouped::{Grouped, Request};
use super::shared::Shared;
use crate::store::{Applied, Changes, RetryClass, SagaId, Store, StoreError};

/// How many changes one commit carries at most.
const GROUP_MAX: usize = 64;

/// Records what was decided outside of step transactions: the outcomes of calls, failed attempts, operators' actions.
#[derive(Debug)]
pub(super) struct Recorder {
    calls: Grouped<Changes, Recorded>,
}

type Recorded = Result<Applied, RecordError>;
type Group<R> = Vec<Request<Changes, R>>;

/// A commit of several changes that failed. The error is everybody's.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(super) struct RecordError {
    pub(super) class: RetryClass,
    pub(super) message: String,
}

impl From<&StoreError> for RecordError {
    fn from(error: &StoreError) -> Self {
        Self { class: error.class(), message: error.to_string() }
    }
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self { calls: Grouped::new() }
    }

    /// Applies changes, together with those of others.
    pub(super) async fn record(&self, changes: Changes) -> Recorded {
        let ended = || RecordError { class: RetryClass::Unknown, message: "the runtime has ended".to_owned() };
        self.calls.call(changes).await.ok_or_else(ended)?
    }
}

impl<S: Store> Shared<S> {
    pub(super) async fn serve_recorder(&self) {
        self.recorder.calls.serve(GROUP_MAX, |group| self.record_group(group)).await;
    }

    async fn record_group(&self, mut group: Vec<Request<Changes, Recorded>>) {
        while !group.is_empty() {
            let (now, later) = one_of_each_saga(group);
            group = later;
            let changes = now.iter().map(|request| request.call.clone()).collect();
            match self.store.record(changes).await {
                Ok(applied) => {
                    self.store_works("record");
                    for (request, applied) in now.into_iter().zip(applied) {
                        request.answer(Ok(applied));
                    }
                }
                Err(error) => {
                    self.store_failed("record", &error);
                    for request in now {
                        request.answer(Err((&error).into()));
                    }
                }
            }
        }
    }
}

/// A slice with two changes of one saga is refused by every store, since the second rests on the first.
fn one_of_each_saga<R>(group: Group<R>) -> (Group<R>, Group<R>) {
    let mut sagas: BTreeSet<SagaId> = BTreeSet::new();
    group.into_iter().partition(|request| request.call.saga.as_ref().is_none_or(|saga| sagas.insert(saga.id)))
}
