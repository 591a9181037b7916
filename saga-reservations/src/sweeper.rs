//! The task that keeps a store tidy.

use std::sync::Arc;
use std::time::Duration;

use crate::ReservationsError;
use crate::contract::ReservationsStore;

/// How many rows one transaction of the sweeper changes.
const BATCH: usize = 64;

/// Ends holds that are over, and forgets reservations that ended long ago. Nothing depends on it but the size of the store and
/// the figures that it shows: holds end by the clock. Any number of processes may sweep one store.
#[derive(Debug, Clone)]
pub struct Sweeper {
    interval: Duration,
    keep: Duration,
}

impl Default for Sweeper {
    /// Each second; what ended is kept for 30 days.
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), keep: Duration::from_hours(24 * 30) }
    }
}

impl Sweeper {
    /// How long the sweeper pauses.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// How long reservations are kept that were released, given back or expired. A request must not be repeated after that: its
    /// key is new again. With Redis, a hold that ended without a confirmation may be forgotten after one day already.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Self {
        self.keep = keep;
        self
    }

    /// Sweeps until it is dropped. Errors of the store are logged, and the next round tries again.
    ///
    /// # Cancel safety
    /// Dropping it ends it; a transaction under way takes effect whole or not at all.
    pub async fn run(&self, store: Arc<dyn ReservationsStore>) {
        loop {
            if let Err(error) = self.sweep(&*store).await {
                tracing::warn!(%error, "reservations could not be swept");
            }
            tokio::time::sleep(self.interval).await;
        }
    }

    /// Sweeps once, until nothing is left to do.
    ///
    /// # Errors
    /// When the store does not answer.
    ///
    /// # Cancel safety
    /// That of [`run`](Self::run).
    pub async fn sweep(&self, store: &dyn ReservationsStore) -> Result<(), ReservationsError> {
        while store.expire_overdue(BATCH).await? >= BATCH {}
        while store.prune(self.keep, BATCH).await? >= BATCH {}
        Ok(())
    }
}
