//! Starting a saga in the transaction that runs its first steps.
//!
//! A saga whose first step is known to be quick needs no commit of its own to start: one transaction inserts it and runs its first
//! steps. If that is not possible, the saga is started by a commit of its own.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::starter::Starter;
use crate::engine::instance::{InlineRequest, InlineStart, NotInlined, WorkItem};
use crate::engine::lifecycle::TaskGuard;
use crate::engine::store_calls::RecordError;
use crate::store::{NewSaga, Store};

impl<S: Store> Starter<S> {
    /// Whether the first step may run in the transaction that starts the saga.
    pub(crate) fn starts_with_step(&self, first: &WorkItem<S>) -> bool {
        self.ctx.starts_in_transactions && self.inline_steps.takes_start(first)
    }

    /// Starts a saga in the transaction of its first step.
    ///
    /// # Cancel safety
    /// When dropped, the saga was started or not; the same call again tells.
    pub(crate) async fn start_with_step(
        self: &Arc<Self>,
        first: WorkItem<S>,
        saga: &Arc<NewSaga>,
        under_way: TaskGuard,
    ) -> Result<Result<(), RecordError>, NotInlined> {
        // A second transaction for the same key would hold a worker until the first one ends.
        let key = self.pending_starts.enter(&saga.tenant, &saga.key).ok_or(NotInlined)?;
        let (answer, answered) = oneshot::channel();
        let starting = InlineStart::new(Arc::clone(saga), answer, under_way, key);
        self.inline_steps.push(first, InlineRequest::Start(Box::new(starting)));
        answered.await.map_err(|_| NotInlined)
    }
}
