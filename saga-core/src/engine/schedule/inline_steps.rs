//! Steps whose transactions also commit the start of the saga, or the decision that issued the step.
//!
//! A step that is known to be quick needs no commit of its own for that. If its transaction cannot commit it, it is committed alone.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::scheduler::Scheduler;
use crate::engine::instance::{
    InlineDecision, InlineRequest, NotInlined, PendingCommit, WorkItem, first_call, takes_semantic_lock,
};
use crate::engine::queue::BatchLimits;
use crate::store::{Claim, Store};

/// Gives steps to the workers, each with the start or the decision that its transaction commits as well.
pub(crate) struct InlineSteps<S: Store> {
    scheduler: Arc<Scheduler<S>>,
    limits: Arc<BatchLimits>,
}

impl<S: Store> InlineSteps<S> {
    pub(crate) fn new(scheduler: Arc<Scheduler<S>>, limits: Arc<BatchLimits>) -> Self {
        Self { scheduler, limits }
    }

    /// Whether a step of this name has run, and is neither slow nor meets locks.
    pub(crate) fn is_proven(&self, step: &'static str) -> bool {
        self.limits.is_proven(step)
    }

    /// Whether the transaction of the command may commit something else.
    pub(crate) fn takes(&self, command: &WorkItem<S>) -> bool {
        self.scheduler.ctx.settings.steps_per_transaction_max > 1
            && command
                .slot
                .as_ref()
                .is_some_and(|slot| !self.scheduler.bulkheads.limits.is_limited(slot.concurrency_key()))
            && first_call(command).is_some_and(|(step, options)| options.grouped && self.is_proven(step))
    }

    /// Whether the transaction of the command may start its saga. One that is refused a semantic lock starts nothing.
    pub(crate) fn takes_start(&self, first: &WorkItem<S>) -> bool {
        self.takes(first) && !(takes_semantic_lock(first) && self.limits.refused_starts.asks_later(first.step().name))
    }

    /// Gives the command to the workers. A closed queue returns it, and the request is left with it.
    pub(crate) fn push(&self, mut command: WorkItem<S>, request: InlineRequest) {
        command.inline = Some(request);
        let flow = self.scheduler.concurrency_key(&command.saga, command.command).flow();
        drop(self.scheduler.transactions.push(flow, command));
    }

    /// Gives a claimed command that takes a semantic lock to the workers of transactions, if it may share one with the step behind it.
    /// The saga often has the lock already, since that is why its row was due. Returns any other command.
    pub(crate) fn take_claimed_lock(&self, command: WorkItem<S>) -> Option<WorkItem<S>> {
        if !takes_semantic_lock(&command) || !self.takes(&command) {
            return Some(command);
        }
        let flow = self.scheduler.concurrency_key(&command.saga, command.command).flow();
        self.scheduler.transactions.push_claimed(flow, command)
    }

    /// Whether the step that a decision issues may commit the decision: it is the only one, and nothing else of the saga is under
    /// way, which could move it before that commit.
    pub(crate) fn takes_decision(&self, prepared: &PendingCommit<S>) -> bool {
        let is_alone = |next: &WorkItem<S>| next.saga.definition.width == 1 || next.saga.state.under_way() == 1;
        prepared.changes.commands.len() == 1
            && prepared.turned.is_none()
            && prepared.successor.as_deref().is_some_and(|next| {
                // A semantic lock is asked for behind the commit of the decision.
                is_alone(next) && self.takes(next) && !takes_semantic_lock(next)
            })
    }

    /// Records a decision in the transaction of the step that it issues. The claim is of the row that it is about.
    ///
    /// # Errors
    /// It was not recorded, as far as this process knows.
    ///
    /// # Cancel safety
    /// When dropped, the decision is recorded or not; the store tells.
    pub(crate) async fn commit_with_step(
        &self,
        mut prepared: PendingCommit<S>,
        claim: Claim,
    ) -> Result<(), NotInlined> {
        let issued = prepared.successor.take().zip(prepared.changes.commands.pop());
        let ((mut next, row), advance) = issued.zip(prepared.changes.saga.as_ref()).ok_or(NotInlined)?;
        // The saga advances once, from the version that it had before the decision.
        next.saga.version = advance.expected;
        let (committed, is_committed) = oneshot::channel();
        let decision = InlineDecision::new(claim, prepared.changes, row, committed);
        self.push(*next, InlineRequest::Decision(Box::new(decision)));
        is_committed.await.map_err(|_| NotInlined)
    }
}
