//! Without the feature no rule is broken and no answer is lost: the types hold nothing and the checks are constants.

#![expect(clippy::unused_self, clippy::trivially_copy_pass_by_ref, reason = "the signatures are those of `enabled.rs`")]

use saga_core::store::StoreError;
use sqlx::{PgConnection, Postgres, Transaction};

/// The mutants that a branch of the store asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mutant {
    KeepsRejectedWrites,
    AcceptsTwoChangesOfOneSaga,
    AllowsWritesAfterRollback,
    SkipsNestingCheck,
    WaitsForLocksWithoutLimit,
    FixedSavepointName,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct BrokenRule;

impl BrokenRule {
    pub(crate) const NONE: Self = Self;

    pub(crate) const fn is(self, _mutant: Mutant) -> bool {
        false
    }

    pub(crate) fn rewrite(self, template: String) -> String {
        template
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CommitFault;

/// No commit is lost.
#[derive(Debug)]
pub(crate) enum LostCommit {}

impl CommitFault {
    pub(crate) const NONE: Self = Self;

    pub(crate) const fn is_set(&self) -> bool {
        false
    }

    pub(crate) const fn take(&self, _operation: &'static str) -> Option<&LostCommit> {
        None
    }
}

impl LostCommit {
    pub(crate) async fn end(&self, _tx: Transaction<'_, Postgres>) -> Result<(), StoreError> {
        match *self {}
    }

    pub(crate) async fn end_raw(&self, _conn: &mut PgConnection) -> Result<(), StoreError> {
        match *self {}
    }

    pub(crate) fn error(&self, _operation: &'static str) -> StoreError {
        match *self {}
    }
}
