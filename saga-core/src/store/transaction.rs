//! The step transaction, as a store runs it.

use std::sync::Arc;
use std::time::Duration;

use super::{Changes, NewSaga, SagaId, SagaRow, StepRecord, StoreError, TakenLock, WantedLock, WorkKind, WorkRef};
use crate::env::BoxFuture;
use crate::key::{Key, StepId, Tenant};

/// A command that is about to run in a transaction.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The row, and the epoch that the engine believes it has.
    pub work: WorkRef,
    /// The saga. A `do` is granted while it is running, an `undo` while it compensates.
    pub saga: SagaId,
    /// The saga's tenant.
    pub tenant: Tenant,
    /// The saga's key.
    pub key: Key,
    /// The step. It must have no record.
    pub step: StepId,
    /// Whether it is done or undone.
    pub kind: WorkKind,
    /// Set where this transaction is to start the saga itself: then there is no work row, and the claim is granted if the
    /// key is free.
    pub start: Option<Arc<NewSaga>>,
    /// The locks that the transaction takes for the step, and for the steps that may follow it in the transaction.
    pub locks: Vec<Arc<WantedLock>>,
}

impl Claim {
    /// A claim of a work row.
    pub(crate) fn new(work: WorkRef, saga: SagaId, tenant: &Tenant, key: &Key, step: StepId, kind: WorkKind) -> Self {
        Self { work, saga, tenant: tenant.clone(), key: key.clone(), step, kind, start: None, locks: Vec::new() }
    }
}

/// What the store does with a handler's writes, and with the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerVerdict {
    /// They are kept.
    Keep,
    /// They are kept, and the claim has another handler to run: `run` is called for it again.
    KeepAndContinue,
    /// They are undone; the transaction continues.
    RollBack,
    /// They are undone, and the claim has another handler to run: `run` is called for it again.
    UndoAndContinue,
    /// A statement of the handler met another transaction ([`Store::is_conflict`](super::Store::is_conflict)): the
    /// transaction is rolled back and fails as a `Conflict`, for which no handler is blamed.
    Conflict,
    /// The handler was dropped before it ended: the transaction is rolled back, and the connection is not used again.
    Abandon,
}

/// The engine's side of a step transaction. The store calls `granted` once, `locked` for every claim with locks, `run` for every granted claim in order,
/// except for one that [`has_run`](TransactionBody::has_run), and again while the verdict is
/// [`KeepAndContinue`](HandlerVerdict::KeepAndContinue) or [`UndoAndContinue`](HandlerVerdict::UndoAndContinue),
/// `changes` once, and `decide_again` while sagas have moved.
///
/// When a store runs the transaction again from its start, it calls `granted` again; the body then forgets the earlier
/// run.
pub trait TransactionBody<C>: Send {
    /// Which of the claims were granted, in their order.
    fn granted(&mut self, granted: &[bool]);

    /// Which of the locks of that claim the transaction has, in their order.
    fn locked(&mut self, index: usize, taken: Vec<Option<TakenLock>>) {
        let _ = (index, taken);
    }

    /// How long the next handler of that claim may take.
    fn time_limit(&self, index: usize) -> Duration;

    /// Whether the next handler of that claim needs a savepoint in front of it. The engine decides this, because it
    /// knows how often the step fails. A store that asks does so in front of every handler, and sets a savepoint only
    /// where one is needed: [`RollBack`](HandlerVerdict::RollBack) and
    /// [`UndoAndContinue`](HandlerVerdict::UndoAndContinue) then undo all writes since the last savepoint, and without
    /// one the transaction fails as a `Conflict`. A store that does not ask sets one for each handler.
    fn needs_savepoint(&mut self, index: usize) -> bool {
        let _ = index;
        true
    }

    /// Runs the next handler of that claim. The body catches panics and ends at its time limit, unless the handler
    /// blocks its thread.
    fn run<'a>(&'a mut self, index: usize, conn: &'a mut C) -> BoxFuture<'a, HandlerVerdict>;

    /// Whether the handler of that claim ran together with that of an earlier claim. The store asks at the claim's
    /// turn, and skips the claim.
    fn has_run(&self, index: usize) -> bool {
        let _ = index;
        false
    }

    /// The changes to record.
    fn changes(&mut self) -> Vec<Changes>;

    /// All changes to record, decided again on these sagas, which have moved. `None` if the steps that ran do not fit
    /// the sagas any more: the transaction is then rolled back and fails as a `Conflict`.
    fn decide_again(&mut self, moved: Vec<MovedSaga>) -> Option<Vec<Changes>>;
}

/// A saga that has moved, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedSaga {
    /// Its row.
    pub saga: SagaRow,
    /// Its step records, without those of items: at least those of every step that the row counts as ended.
    pub records: Vec<StepRecord>,
}

/// Why a step transaction did not commit, or may not have committed.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct TransactError {
    /// The error. Its class says whether the transaction certainly did not commit.
    #[source]
    pub error: StoreError,
    /// The claim whose handler is to blame, if one is known. Behind a shared savepoint, or without one, a handler that
    /// ran earlier may have caused the error.
    pub culprit: Option<usize>,
    /// Whether the culprit ended the transaction that it was given.
    pub ended_transaction: bool,
}

impl From<StoreError> for TransactError {
    fn from(error: StoreError) -> Self {
        Self { error, culprit: None, ended_transaction: false }
    }
}
