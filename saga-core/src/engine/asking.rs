//! Asking the store until it answers.

use std::time::Duration;

use super::shared::EngineContext;
use crate::store::{Store, StoreError, StoreErrorKind};
use crate::unwind::caught_while;

/// The pause before the store is asked again for the first time.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long a caller waits between its attempts to reach the store. The caller makes it before the first attempt, so that it
/// notices a recovery that happens during that attempt.
#[derive(Debug)]
pub(super) struct Backoff {
    failures: u32,
    /// How often the store had recovered when the attempt began.
    recoveries: u64,
}

/// How long to wait before what failed so many times, and once more, is asked for again.
pub(super) fn backoff_after(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(10)).min(PAUSE_MAX)
}

/// What the store answers. A panic of it is an error of this call, which may have been carried out.
pub(super) async fn catch_panic<T>(
    operation: &'static str,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let panicked = |panic| {
        let detail = format!("the store panicked: {panic}");
        Err(StoreError::new(StoreErrorKind::UnknownCommit, operation, detail))
    };
    caught_while(call).await.unwrap_or_else(panicked)
}

impl<S: Store> EngineContext<S> {
    /// What the store answers, however often it fails before. Nothing when the runtime is told to stop while it fails.
    pub(super) async fn retry_store<T, F>(&self, doing: &'static str, call: impl FnMut() -> F + Send) -> Option<T>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        self.retry_store_until(Self::is_stopping, doing, call).await
    }

    /// The same for what is not left undone by a shutdown: nothing only when its patience is over.
    pub(super) async fn retry_store_to_the_end<T, F>(
        &self,
        doing: &'static str,
        call: impl FnMut() -> F + Send,
    ) -> Option<T>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        self.retry_store_until(Self::has_stopped, doing, call).await
    }

    async fn retry_store_until<T, F>(
        &self,
        gives_up: fn(&Self) -> bool,
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
                    self.store_works(doing);
                    return Some(answer);
                }
                Err(error) => {
                    self.store_failed(doing, &error);
                    if gives_up(self) {
                        return None;
                    }
                    self.pause_for_store(&mut backoff).await;
                }
            }
        }
    }

    /// A backoff for a caller whose last `failures` attempts failed.
    pub(super) fn backoff(&self, failures: u32) -> Backoff {
        Backoff { failures, recoveries: self.store_health.recoveries() }
    }

    /// Waits before the store is asked again. Once it has recovered, also between the failure and this call, there is
    /// nothing to wait for: what could not be recorded while it was away is recorded before its leases end.
    pub(super) async fn pause_for_store(&self, backoff: &mut Backoff) {
        tokio::select! {
            biased;
            () = self.store_health.recovers(backoff.recoveries) => {
                backoff.failures = 0;
                self.env.sleep(PAUSE).await;
            }
            () = self.env.sleep(backoff_after(backoff.failures)) => backoff.failures += 1,
        }
        backoff.recoveries = self.store_health.recoveries();
    }
}
