//! The sagas that have not ended yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::sync::Notify;

use crate::job::Job;

/// How long nothing may end before the run is given up.
const PATIENCE: Duration = Duration::from_mins(1);

/// Tells of the progress so often during a run.
const TOLD_TIMES: u32 = 4;

/// Counts the sagas that have ended, tells of it on standard error, and lets the driver wait for the last.
#[derive(Debug, Clone)]
pub struct Remaining {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sagas: u32,
    remaining: AtomicU32,
    none_remain: Notify,
}

impl Remaining {
    /// All sagas of the job remain.
    pub fn of(job: &Job) -> Self {
        let shared = Shared { sagas: job.sagas, remaining: AtomicU32::new(job.sagas), none_remain: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    /// One saga has ended.
    pub fn ended(&self) {
        // More ends than sagas are left for the count of the rows to find.
        let subtract = |remaining: u32| remaining.checked_sub(1);
        let Ok(before) = self.shared.remaining.fetch_update(Ordering::AcqRel, Ordering::Acquire, subtract) else {
            return;
        };
        let ended = self.shared.sagas - (before - 1);
        if ended.is_multiple_of(self.shared.sagas.div_ceil(TOLD_TIMES)) {
            eprintln!("{ended} of {} sagas ended", self.shared.sagas);
        }
        if before == 1 {
            self.shared.none_remain.notify_one();
        }
    }

    /// Waits until none remain.
    ///
    /// # Errors
    /// For a whole minute none ended.
    pub async fn wait(&self) -> Result<()> {
        loop {
            let before = self.count();
            if before == 0 {
                return Ok(());
            }
            if tokio::time::timeout(PATIENCE, self.shared.none_remain.notified()).await.is_err()
                && self.count() == before
            {
                bail!("{before} of {} sagas remain, and none ended for {} s", self.shared.sagas, PATIENCE.as_secs());
            }
        }
    }

    fn count(&self) -> u32 {
        self.shared.remaining.load(Ordering::Acquire)
    }
}
