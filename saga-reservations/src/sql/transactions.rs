//! Transactions, which are run again after a conflict.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::database::Database;
use super::work::{Work, WorkError};

/// How often a transaction is run again after another one made the same row at the same time. The second time the row is there.
const CONFLICTS_MAX: usize = 16;

/// The transactions of a database.
#[derive(Debug, Clone)]
pub(super) struct Transactions {
    database: Database,
    /// How far a test moved the clock, in microseconds.
    clock_shift: Arc<AtomicI64>,
}

impl Transactions {
    pub(super) fn on(database: Database) -> Self {
        Self { database, clock_shift: Arc::default() }
    }

    #[cfg(feature = "test-clock")]
    pub(super) fn clock_shift(&self) -> &Arc<AtomicI64> {
        &self.clock_shift
    }

    #[cfg(feature = "redis")]
    pub(super) fn clock_moved_by(&self) -> i64 {
        self.clock_shift.load(Ordering::Relaxed)
    }

    /// Runs the work in a transaction, and again after a conflict.
    pub(super) async fn run<W: Work>(&self, work: impl Fn() -> W + Send + Sync) -> Result<W::Answer, WorkError> {
        let mut conflicts = 0;
        loop {
            let clock_shift = self.clock_shift.load(Ordering::Relaxed);
            match self.database.transact(work(), clock_shift).await {
                Err(error) if error.is_conflict() && conflicts < CONFLICTS_MAX => conflicts += 1,
                answer => return answer,
            }
        }
    }
}
