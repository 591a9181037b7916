//! The maintenance task: purges what is kept for a time only, in one process at a time.

use std::sync::Arc;
use std::time::Duration;

use super::pace::Pace;
use super::refused_sagas::RefusedSagas;
use crate::engine::claim::Poller;
use crate::engine::commit::Committer;
use crate::engine::context::EngineContext;
use crate::engine::lifecycle::backoff_after;
use crate::engine::message::Messages;
use crate::env::Pause;
use crate::log;
use crate::store::{Archive, ArchiveError, Store, StoreError};

/// The task looks this many times per shortest retention, and at least once in [`INTERVAL_MAX`].
const LOOKS: u32 = 720;
const INTERVAL_MAX: Duration = Duration::from_mins(10);
/// How often it looks for what operators purged, and for keys of requests, where nothing else is kept for a time only.
const IDLE_INTERVAL: Duration = Duration::from_hours(6);

/// Why a pass ended before everything was done.
#[derive(Debug)]
pub(super) enum PassError {
    /// The store failed.
    Store(StoreError),
    /// The archive failed; nothing that it did not keep was purged.
    Archive(ArchiveError),
}

impl From<StoreError> for PassError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Purges ended sagas, and what else is kept for a time only.
pub(crate) struct Maintenance<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(super) committer: Arc<Committer<S>>,
    pub(super) messages: Arc<Messages>,
    pub(super) poller: Arc<Poller<S>>,
    pub(super) archive: Option<Arc<dyn Archive>>,
}

impl<S: Store> Maintenance<S> {
    pub(crate) fn new(poller: Arc<Poller<S>>, messages: Arc<Messages>, archive: Option<Arc<dyn Archive>>) -> Self {
        let (ctx, committer) = (Arc::clone(&poller.ctx), Arc::clone(&poller.committer));
        Self { ctx, committer, messages, poller, archive }
    }
}

impl<S: Store> Maintenance<S> {
    /// Runs until the runtime stops. Its first turn is at once, so that a process which soon stops has one too.
    pub(crate) async fn run(self: Arc<Self>) {
        let interval = self.interval();
        let (mut failures, mut pace, mut refused) = (0, Pace::new(), RefusedSagas::default());
        let mut is_first = true;
        loop {
            let pausing = async {
                if is_first {
                    self.first_turn().await;
                } else if failures > 0 {
                    self.ctx.env.sleep(backoff_after(failures).max(self.ctx.settings.poll_interval)).await;
                } else {
                    self.ctx.env.pause(Pause::of(interval)).await;
                }
            };
            tokio::select! {
                biased;
                () = self.ctx.lifecycle.stopping.cancelled() => return,
                () = pausing => {}
            }
            if !self.committer.scheduler.membership.wait_until_alive().await {
                return;
            }
            is_first = false;
            failures = match self.pass(&mut pace, &mut refused).await {
                Ok(()) => {
                    self.ctx.health.store_works("purge");
                    0
                }
                Err(PassError::Store(error)) => {
                    self.ctx.health.store_failed("purge", &error);
                    failures + 1
                }
                Err(PassError::Archive(error)) => {
                    log::warn!(%error, "archive failed");
                    pace.refused(failures + 1);
                    failures + 1
                }
            };
        }
    }

    /// How long it pauses between two turns.
    fn interval(&self) -> Duration {
        let often = |shortest: Duration| (shortest / LOOKS).clamp(self.ctx.settings.poll_interval, INTERVAL_MAX);
        let interval = self.ctx.shortest_retention().map_or(IDLE_INTERVAL, often);
        // A saga may wait for a lock of a step whose command is gone.
        if self.ctx.locks_calls() { interval.min(INTERVAL_MAX) } else { interval }
    }

    /// Waits for the first claim, and gives way to work that was due when the process started.
    async fn first_turn(&self) {
        self.poller.first_poll().await;
        self.give_way().await;
    }

    /// Does what is due, if this process has the lease.
    async fn pass(&self, pace: &mut Pace, refused: &mut RefusedSagas) -> Result<(), PassError> {
        let Some(owner) = self.committer.scheduler.membership.member() else { return Ok(()) };
        while let Some(epoch) = self.ctx.store.lease_maintenance(owner, self.ctx.settings.lease_ttl).await? {
            let began = self.ctx.env.now();
            let size = pace.batch();
            // What is not archived is deleted also while sagas cannot be purged.
            let purged = self.purge_batch(epoch, size, refused).await;
            let others = self.forget_batch().await? | self.ask_for_closed(epoch).await?;
            let more = purged? | others;
            let worked = self.ctx.env.now().saturating_sub(began);
            if !more || self.ctx.lifecycle.is_stopping() {
                break;
            }
            pace.took(worked);
            self.rest(worked).await;
        }
        Ok(())
    }

    /// Leaves the store to the sagas.
    async fn rest(&self, worked: Duration) {
        let rest = Pace::rest(worked, !self.ctx.lifecycle.is_idle());
        if !rest.is_zero() {
            self.ctx.env.sleep(rest).await;
        }
        self.give_way().await;
    }

    /// Waits while more work is due than this process can claim.
    async fn give_way(&self) {
        let began = self.ctx.env.now();
        let waited = || self.ctx.env.now().saturating_sub(began);
        while Pace::gives_way(waited(), self.poller.is_behind()) && !self.ctx.lifecycle.is_stopping() {
            self.ctx.env.sleep(self.ctx.settings.poll_interval).await;
        }
    }
}
