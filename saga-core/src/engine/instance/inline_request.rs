//! What the transaction of a step commits besides the step: the start of its saga, or the decision that issued the step.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::inline_start::InlineStart;
use crate::store::{Changes, Claim, NewWork, StoreError};

/// Why something was not committed together with the step behind it: it is to be committed by itself.
pub(crate) struct NotInlined;

/// What is committed by the transaction of the step behind it. The work row of that step is not written meanwhile.
#[derive(Debug)]
pub(crate) enum InlineRequest {
    /// The saga starts.
    Start(Box<InlineStart>),
    /// A decision issued the step.
    Decision(Box<InlineDecision>),
}

/// A decision that is recorded by the transaction of the step that it issued.
#[derive(Debug)]
pub(crate) struct InlineDecision {
    /// The row that the decision is about. Another decision about it was not committed, and is not during the transaction.
    claim: Claim,
    /// What it records, without the row of the step.
    changes: Changes,
    row: NewWork,
    committed: oneshot::Sender<()>,
}

impl InlineDecision {
    pub(crate) fn new(claim: Claim, changes: Changes, row: NewWork, committed: oneshot::Sender<()>) -> Self {
        Self { claim, changes, row, committed }
    }
}

impl InlineRequest {
    /// What the transaction has to claim, instead of the row of the step.
    pub(crate) fn claim(&self, step: Claim) -> Claim {
        match self {
            Self::Start(starting) => Claim { start: Some(Arc::clone(&starting.saga)), ..step },
            Self::Decision(decision) => Claim { locks: step.locks, ..decision.claim.clone() },
        }
    }

    /// The row of the step, which is written only if the step is left for later.
    pub(crate) fn row(&self) -> Option<NewWork> {
        match self {
            Self::Start(starting) => starting.row(),
            Self::Decision(decision) => Some(decision.row.clone()),
        }
    }

    /// The changes of the decision, to record before those of the step.
    pub(crate) fn changes(&self) -> Option<Changes> {
        match self {
            Self::Start(_) => None,
            Self::Decision(decision) => Some(decision.changes.clone()),
        }
    }

    /// The transaction committed, or may have. Whether a decision was recorded is asked of the store.
    pub(crate) fn answer(self, committed: Result<(), &StoreError>) {
        match self {
            Self::Start(starting) => starting.answer(committed),
            Self::Decision(decision) => {
                if committed.is_ok() {
                    // The caller stopped waiting, and finds it in the store.
                    _ = decision.committed.send(());
                }
            }
        }
    }

    /// The transaction did not commit it.
    pub(crate) fn leave(self) {
        drop(self);
    }
}
