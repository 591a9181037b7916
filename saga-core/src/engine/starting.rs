//! Starting a saga in the transaction that runs its first steps.
//!
//! A saga whose first step is known to be quick and clean needs no commit of its own to be started: one transaction
//! inserts it and runs its first steps. Where anything is in the way of that, the saga is started by itself.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::command::WorkItem;
use super::recorder::RecordError;
use super::shared::EngineContext;
use super::starting_keys::PendingStart;
use super::tasks::TaskGuard;
use crate::machine::Effect;
use crate::store::{NewSaga, NewWork, Store, StoreError};

/// A saga that is started by the transaction of its first step.
#[derive(Debug)]
pub(super) struct InlineStart {
    pub(super) saga: Arc<NewSaga>,
    answer: oneshot::Sender<Result<(), RecordError>>,
    under_way: TaskGuard,
    key: PendingStart,
}

/// Why a saga was not started with its first step: it is to be started by itself.
pub(super) struct NotInlined;

impl InlineStart {
    /// The row of its first command, which is written only if that is left for later.
    pub(super) fn row(&self) -> Option<NewWork> {
        self.saga.commands.first().cloned()
    }

    /// The transaction committed, or may have.
    pub(super) fn answer(self, started: Result<(), &StoreError>) {
        let Self { answer, under_way, key, .. } = self;
        drop(key);
        // A caller that went away does not want to know.
        _ = answer.send(started.map_err(RecordError::from));
        drop(under_way);
    }

    /// The transaction did not start it.
    pub(super) fn leave(self) {
        drop(self);
    }
}

impl<S: Store> EngineContext<S> {
    /// Whether the first step may run in the transaction that starts the saga.
    pub(super) fn starts_with_step(&self, first: &WorkItem<S>) -> bool {
        self.settings.steps_per_transaction_max > 1
            && self.starts_in_transactions
            && first.slot.as_ref().is_some_and(|place| !self.bulkheads.is_limited(place.seat()))
            && first.effect() == Effect::Transactional
            && first.options().grouped
            && self.limits.is_proven(first.step().name)
    }

    /// Starts a saga in the transaction of its first step.
    ///
    /// # Cancel safety
    /// Dropped, the saga is started or not, as if its process had ended.
    pub(super) async fn start_with_step(
        self: &Arc<Self>,
        mut first: WorkItem<S>,
        saga: &Arc<NewSaga>,
        under_way: TaskGuard,
    ) -> Result<Result<(), RecordError>, NotInlined> {
        // A second transaction for the same key would hold a worker until the first one ends.
        let key = self.pending_starts.enter(&saga.tenant, &saga.key).ok_or(NotInlined)?;
        let (answer, answered) = oneshot::channel();
        first.inline_start = Some(Box::new(InlineStart { saga: Arc::clone(saga), answer, under_way, key }));
        // A queue that is closed gives it back, and the answer is dropped with it.
        let flow = self.seat_of(&first.saga, first.command).flow();
        drop(self.transactions.push(flow, first));
        answered.await.map_err(|_| NotInlined)
    }
}
