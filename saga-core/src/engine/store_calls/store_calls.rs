//! Retries calls of the store until they work.

use std::sync::Arc;

use super::backoff::{Backoff, catch_panic};
use super::id_blocks::IdBlocks;
use super::store_clock::StoreClock;
use crate::engine::context::EngineContext;
use crate::engine::lifecycle::{Lifecycle, PAUSE, backoff_after};
use crate::log;
use crate::store::{Store, StoreError, StoreErrorKind};

/// Calls of the store with retries, and what commits need: ids and the clock.
pub(crate) struct StoreCalls<S: Store> {
    ctx: Arc<EngineContext<S>>,
    pub(crate) ids: IdBlocks,
    pub(crate) clock: StoreClock,
}

impl<S: Store> StoreCalls<S> {
    pub(crate) fn new(ctx: Arc<EngineContext<S>>) -> Self {
        Self { ctx, ids: IdBlocks::new(), clock: StoreClock::default() }
    }
}

impl<S: Store> StoreCalls<S> {
    /// Calls the store until it works; `None` if the runtime starts to stop while the store fails.
    pub(crate) async fn retry_store<T, F>(&self, doing: &'static str, call: impl FnMut() -> F + Send) -> Option<T>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        self.retry_store_until(Lifecycle::is_stopping, doing, call).await
    }

    /// The same for calls that a shutdown waits for; `None` only once the shutdown has timed out.
    pub(crate) async fn retry_store_to_the_end<T, F>(
        &self,
        doing: &'static str,
        call: impl FnMut() -> F + Send,
    ) -> Option<T>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        self.retry_store_until(Lifecycle::has_stopped, doing, call).await
    }

    async fn retry_store_until<T, F>(
        &self,
        gives_up: fn(&Lifecycle) -> bool,
        doing: &'static str,
        mut call: impl FnMut() -> F + Send,
    ) -> Option<T>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let mut backoff = self.backoff(0);
        loop {
            match catch_panic(doing, call()).await {
                Ok(answer) => {
                    self.ctx.health.store_works(doing);
                    return Some(answer);
                }
                Err(error) => {
                    self.ctx.health.store_failed(doing, &error);
                    if gives_up(&self.ctx.lifecycle) {
                        return None;
                    }
                    self.pause_for_store(&mut backoff).await;
                }
            }
        }
    }

    /// A backoff for a caller whose last `failures` attempts failed.
    pub(crate) fn backoff(&self, failures: u32) -> Backoff {
        Backoff { failures, recoveries: self.ctx.health.store.recoveries() }
    }

    /// Waits before the next attempt. The wait ends early once the store has recovered, also between the failure and this call, so that
    /// results are recorded before their leases end.
    pub(crate) async fn pause_for_store(&self, backoff: &mut Backoff) {
        tokio::select! {
            biased;
            () = self.ctx.health.store.recovers(backoff.recoveries) => {
                backoff.failures = 0;
                self.ctx.env.sleep(PAUSE).await;
            }
            () = self.ctx.env.sleep(backoff_after(backoff.failures)) => backoff.failures += 1,
        }
        backoff.recoveries = self.ctx.health.store.recoveries();
    }

    /// Ids for new rows; `None` if the runtime stops before the store reserves any.
    pub(crate) async fn take_ids(&self, count: usize) -> Option<std::ops::Range<i64>> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let ids = self.retry_store("reserve_ids", || self.ids.take(&*self.ctx.store, count)).await;
        if ids.is_none() {
            log::warn!(count, "ids not reserved during shutdown");
        }
        ids
    }
}

/// A read that is over also where what is stored cannot be read: to try again would bring the same answer.
pub(crate) async fn or_unreadable<T>(
    reading: impl Future<Output = Result<T, StoreError>> + Send,
) -> Result<Result<T, StoreError>, StoreError> {
    match reading.await {
        Err(error) if error.kind() == StoreErrorKind::Corrupt => Ok(Err(error)),
        read => read.map(Ok),
    }
}
