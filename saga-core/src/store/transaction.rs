//! The step transaction, as a store runs it.

use std::sync::Arc;
use std::time::Duration;

use super::{Changes, NewSaga, SagaId, SagaRow, StepRecord, StoreError, WorkKind, WorkRef};
use crate::env::BoxFuture;
use crate::key::{Key, StepId, Tenant};

/// A command that is about to run in a transaction.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The row and the epoch that we believe it has.
    pub work: WorkRef,
    /// The saga. A `do` is granted while it is running, an `undo` while it compensates.
    pub saga: SagaId,
    /// Whose saga it is.
    pub tenant: Tenant,
    /// The saga's key.
    pub key: Key,
    /// Which step; it must have no record.
    pub step: StepId,
    /// Whether it is done or undone.
    pub kind: WorkKind,
    /// Set where this transaction is to start the saga itself: then there is no work row, and the claim is granted if the
    /// key is free.
    pub start: Option<Arc<NewSaga>>,
}

/// What becomes of a handler's writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerVerdict {
    /// They are kept.
    Keep,
    /// They are kept, and the claim has another handler to run: `run` is called for it again.
    KeepAndContinue,
    /// They are undone; the transaction goes on.
    RollBack,
    /// They are undone, and the claim has another handler to run: `run` is called for it again.
    UndoAndContinue,
    /// A statement of the handler met another transaction ([`Store::is_conflict`]): the transaction is rolled back, and fails as a
    /// `Conflict`, which is nobody's fault.
    Conflict,
    /// The handler was dropped in the middle of something: the transaction is rolled back, and the connection is not used again.
    Abandon,
}

/// The engine's side of a step transaction. The store calls it in this order: `granted` once, `run` for every granted
/// claim in order, except for one that [`has_run`](TransactionBody::has_run), and again as long as the verdict is
/// [`GoOn`](HandlerVerdict::KeepAndContinue) or [`GoBack`](HandlerVerdict::UndoAndContinue), `changes` once, `decide_again` as long as
/// sagas have moved.
///
/// When a store runs the transaction again from its start, it calls `granted` again; what came before is forgotten.
pub trait TransactionBody<C>: Send {
    /// Which of the claims were granted, in their order.
    fn granted(&mut self, granted: &[bool]);

    /// How long the next handler of that claim may take.
    fn time_limit(&self, index: usize) -> Duration;

    /// Whether the next handler of that claim needs a savepoint in front of it: who decides that knows how often its step
    /// fails, and the store keeps no account of it. A store that asks, asks in front of every handler, and sets a savepoint
    /// exactly where it is needed: [`RollBack`](Verdict::RollBack) and [`GoBack`](HandlerVerdict::UndoAndContinue) then take back all that
    /// was written since the last one, and where there is none, the transaction fails as a `Conflict`. A store that does not
    /// ask sets one for each.
    fn needs_savepoint(&mut self, index: usize) -> bool {
        let _ = index;
        true
    }

    /// Runs the next handler of that claim. It catches panics and ends at its time limit, unless the handler blocks its thread.
    fn run<'a>(&'a mut self, index: usize, conn: &'a mut C) -> BoxFuture<'a, HandlerVerdict>;

    /// Whether the handler of that claim ran together with that of an earlier one. The store asks when the claim has its
    /// turn, and passes it over.
    fn has_run(&self, index: usize) -> bool {
        let _ = index;
        false
    }

    /// What is to be recorded.
    fn changes(&mut self) -> Vec<Changes>;

    /// What is to be recorded, now that these sagas turned out to have moved: the whole of it again. Nothing when what ran
    /// does not fit what they are now: then the transaction is rolled back, and fails as a `Conflict`.
    fn decide_again(&mut self, moved: Vec<MovedSaga>) -> Option<Vec<Changes>>;
}

/// A saga that turned out to have moved, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedSaga {
    /// Its row.
    pub saga: SagaRow,
    /// Its step records, without those of items: at least those of every step that the row counts as ended.
    pub records: Vec<StepRecord>,
}

/// Why a step transaction did not commit, or may not have.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct TransactError {
    /// What went wrong. Its class says whether the transaction certainly did not commit.
    #[source]
    pub error: StoreError,
    /// The claim whose handler is to blame, where somebody is. Behind a shared savepoint, or without one, it may be the
    /// fault of one that ran before it.
    pub culprit: Option<usize>,
    /// Whether the culprit ended the transaction that it was given.
    pub ended_transaction: bool,
}

impl From<StoreError> for TransactError {
    fn from(error: StoreError) -> Self {
        Self { error, culprit: None, ended_transaction: false }
    }
}
