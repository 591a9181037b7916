//! The claim of a key, from the lease to its end.

use std::sync::Arc;
use std::time::Duration;

use saga_core::store::{IdempotencyKey, IdempotencyKeys, RetryClass, StoreError};
use tokio::time::{Instant, sleep};

use super::settings::Settings;

/// The first pause before a store is asked again that could not be reached.
const PAUSE: Duration = Duration::from_millis(50);

/// The longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A key that is leased to this process.
pub(super) struct Claim<S: IdempotencyKeys> {
    pub(super) settings: Arc<Settings<S>>,
    pub(super) key: IdempotencyKey,
    pub(super) epoch: u64,
    pub(super) leased_until: Instant,
}

impl<S: IdempotencyKeys> Claim<S> {
    /// Keeps the response of the call, or frees the key if there is none to keep. If the store cannot be reached, that is tried again as
    /// long as the lease lasts, and the client has its answer meanwhile.
    pub(super) async fn end(self, response: Option<Vec<u8>>) {
        match self.try_end(response.as_deref()).await {
            Err(error) if error.class() != RetryClass::Permanent => {
                tokio::spawn(async move { self.end_later(response.as_deref(), error).await });
            }
            ended => self.log_end(&ended, response.is_some()),
        }
    }

    async fn end_later(&self, response: Option<&[u8]>, error: StoreError) {
        let (mut failed, mut pause) = (error, PAUSE);
        let ended = loop {
            if Instant::now() + pause >= self.leased_until {
                break Err(failed);
            }
            sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
            match self.try_end(response).await {
                Err(error) if error.class() != RetryClass::Permanent => failed = error,
                // It may have ended before, by a call whose answer was lost.
                ended => break ended.map(|_| true),
            }
        };
        self.log_end(&ended, response.is_some());
    }

    async fn try_end(&self, response: Option<&[u8]>) -> Result<bool, StoreError> {
        match response {
            Some(response) => self.settings.store.complete_key(&self.key, self.epoch, response).await,
            None => self.settings.store.release_key(&self.key, self.epoch).await,
        }
    }

    fn log_end(&self, ended: &Result<bool, StoreError>, keeps: bool) {
        let key = &self.key;
        match ended {
            Ok(false) if keeps => {
                tracing::warn!(%key, "a handler took longer than its lease, and its response was not kept");
            }
            Ok(_) => {}
            Err(error) if keeps => tracing::warn!(%key, %error, "response not kept"),
            Err(error) => tracing::warn!(%key, %error, "key not released; it is free when its lease ends"),
        }
    }
}
