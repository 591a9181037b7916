//! The faults of the feature `fault-injection`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use saga_core::store::{StoreError, StoreErrorKind};
use sqlx::{Executor as _, PgConnection, Postgres, Transaction};

use crate::error::store_error;

/// A mutant of the store, named by the rule that it breaks: a test shows that without the rule the same steps end badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The writes of a handler that rejected are kept.
    KeepsRejectedWrites,
    /// Two changes of one saga are written by one statement.
    AcceptsTwoChangesOfOneSaga,
    /// The epoch of a work row is read, and the row is not written.
    ReadsEpochWithoutWriting,
    /// A lane is leased although another process holds it.
    IgnoresLaneOwner,
    /// A handler can write after a `ROLLBACK`.
    AllowsWritesAfterRollback,
    /// The next position is read from the outbox, and no counter row is locked.
    CountsWithoutLock,
    /// The store does not look whether the commit ended the transaction, nor whether a returned connection is inside one.
    SkipsNestingCheck,
    /// A commit that several calls share waits for locks without a limit.
    WaitsForLocksWithoutLimit,
    /// The savepoint in front of a handler has a name that a step can guess.
    FixedSavepointName,
}

impl Mutant {
    fn rewrite(self, statement: String) -> String {
        match self {
            Self::ReadsEpochWithoutWriting if statement.contains("leased_until = NULL, epoch = w.epoch + 1") => {
                "SELECT u.id, u.epoch FROM unnest($1::bigint[], $2::bigint[]) u (id, epoch) \
                 JOIN {schema}.work w ON w.id = u.id AND w.epoch = u.epoch"
                    .to_owned()
            }
            Self::IgnoresLaneOwner => statement.replace("(l.owner IS NULL OR", "(true OR"),
            Self::CountsWithoutLock => match statement.split_once("INSERT INTO {schema}.published") {
                Some((before, counter)) => {
                    let rest = counter.split_once("RETURNING p.position").map_or("", |(_, rest)| rest);
                    let read = "SELECT coalesce(max(o.position), 0) + 1 AS position FROM {schema}.outbox o \
                         WHERE o.tenant = $1 AND o.aggregatetype = $2 AND o.aggregateid = $3";
                    format!("{before}{read}{rest}")
                }
                None => statement,
            },
            _ => statement,
        }
    }
}

/// The rule that this store breaks, if any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrokenRule(Option<Mutant>);

impl BrokenRule {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) const fn of(mutant: Mutant) -> Self {
        Self(Some(mutant))
    }

    pub(crate) fn is(self, mutant: Mutant) -> bool {
        self.0 == Some(mutant)
    }

    /// A statement template as the mutant sends it.
    pub(crate) fn rewrite(self, template: String) -> String {
        match self.0 {
            Some(mutant) => mutant.rewrite(template),
            None => template,
        }
    }
}

/// Whether the next commit of a store handle loses its answer.
#[derive(Debug, Clone)]
pub(crate) struct CommitFault(Option<Arc<LostCommit>>);

/// A commit whose answer does not arrive.
#[derive(Debug)]
pub(crate) struct LostCommit {
    is_committed: bool,
    is_used: AtomicBool,
}

impl CommitFault {
    pub(crate) const NONE: Self = Self(None);

    /// The next commit loses its answer; `is_committed` says whether it takes place.
    pub(crate) fn lose_next(is_committed: bool) -> Self {
        Self(Some(Arc::new(LostCommit { is_committed, is_used: AtomicBool::new(false) })))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// The fault that hits the commit of this call, if any: reads and ids have none.
    pub(crate) fn take(&self, operation: &'static str) -> Option<&LostCommit> {
        let lost = self.0.as_deref().filter(|_| matches!(operation, "start" | "record" | "transact" | "run_once"))?;
        (!lost.is_used.swap(true, Ordering::Relaxed)).then_some(lost)
    }
}

impl LostCommit {
    /// Commits or rolls back, as the test wants it.
    pub(crate) async fn end(&self, tx: Transaction<'_, Postgres>) -> Result<(), StoreError> {
        let ended = if self.is_committed { tx.commit().await } else { tx.rollback().await };
        ended.map_err(|error| store_error("lost_commit", error))
    }

    /// The same for a transaction that was begun by a message of the store.
    pub(crate) async fn end_raw(&self, conn: &mut PgConnection) -> Result<(), StoreError> {
        let end = if self.is_committed { "COMMIT" } else { "ROLLBACK" };
        conn.execute(end).await.map(drop).map_err(|error| store_error("lost_commit", error))
    }

    #[expect(clippy::unused_self, reason = "only a call that met the fault has this error")]
    pub(crate) fn error(&self, operation: &'static str) -> StoreError {
        StoreError::new(StoreErrorKind::UnknownCommit, operation, "the answer to the commit did not arrive")
    }
}
