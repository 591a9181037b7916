//! A saga that the transaction of its first step starts.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::pending_starts::PendingStart;
use crate::engine::lifecycle::TaskGuard;
use crate::engine::store_calls::RecordError;
use crate::store::{NewSaga, NewWork, StoreError};

/// A saga that is started by the transaction of its first step.
#[derive(Debug)]
pub(crate) struct InlineStart {
    pub(crate) saga: Arc<NewSaga>,
    answer: oneshot::Sender<Result<(), RecordError>>,
    under_way: TaskGuard,
    key: PendingStart,
}

impl InlineStart {
    pub(crate) fn new(
        saga: Arc<NewSaga>,
        answer: oneshot::Sender<Result<(), RecordError>>,
        under_way: TaskGuard,
        key: PendingStart,
    ) -> Self {
        Self { saga, answer, under_way, key }
    }

    /// The row of its first command, which is written only if that is left for later.
    pub(crate) fn row(&self) -> Option<NewWork> {
        self.saga.commands.first().cloned()
    }

    /// The transaction committed, or may have.
    pub(crate) fn answer(self, started: Result<(), &StoreError>) {
        let Self { answer, under_way, key, .. } = self;
        drop(key);
        // A caller that went away does not want to know.
        _ = answer.send(started.map_err(RecordError::from));
        drop(under_way);
    }
}
