//! Commits whose answer gets lost, for tests of those who have to live with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use saga_core::store::{StoreError, StoreErrorKind};
use sqlx::{Postgres, Transaction};

use crate::error::store_error;
use crate::store::PostgresStore;

/// What becomes of the next commit of a handle.
#[derive(Debug)]
pub(crate) struct Doubt {
    commits: bool,
    is_cast: AtomicBool,
}

impl Doubt {
    #[cfg(feature = "testing")]
    pub(crate) fn new(commits: bool) -> Self {
        Self { commits, is_cast: AtomicBool::new(false) }
    }

    /// Ends the transaction as the test wants it.
    pub(crate) async fn settle(&self, tx: Transaction<'_, Postgres>) -> Result<(), StoreError> {
        let ended = if self.commits { tx.commit().await } else { tx.rollback().await };
        ended.map_err(|error| store_error("doubt", error))
    }

    /// What the caller is told.
    #[expect(clippy::unused_self, reason = "only whoever was given a doubt may tell of it")]
    pub(crate) fn error(&self, operation: &'static str) -> StoreError {
        StoreError::new(StoreErrorKind::UnknownCommit, operation, "the answer to the commit did not arrive")
    }
}

impl PostgresStore {
    /// The doubt that is cast on the commit of this call, if any: reads and ids have none.
    pub(crate) fn doubt_of(&self, operation: &'static str) -> Option<Arc<Doubt>> {
        let doubt = self.doubt.as_ref().filter(|_| matches!(operation, "start" | "record" | "transact"))?;
        (!doubt.is_cast.swap(true, Ordering::Relaxed)).then(|| Arc::clone(doubt))
    }
}
