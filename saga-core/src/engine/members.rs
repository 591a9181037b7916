//! Saying that this process is alive.

use std::sync::Arc;

use super::shared::Shared;
use crate::store::Store;

impl<S: Store> Shared<S> {
    /// Beats until it is dropped. A process that was taken for dead comes back as another member: what it had leased
    /// is no longer its own.
    pub(super) async fn beat(self: Arc<Self>) {
        loop {
            self.env.sleep(self.settings.member_ttl / 4).await;
            self.beat_now().await;
        }
    }

    /// Beats once.
    pub(super) async fn beat_now(&self) {
        let ttl = self.settings.member_ttl;
        let began = self.env.now();
        match self.store.beat(self.member_id(), ttl).await {
            Ok(true) => {
                self.store_works("beat");
                self.set_alive_until(began + ttl);
            }
            Ok(false) => match self.store.join(ttl).await {
                Ok(incarnation) => {
                    tracing::warn!("this process was taken for dead; it goes on as another member");
                    self.store_works("join");
                    self.set_member(incarnation.member);
                    self.set_alive_until(began + ttl);
                }
                Err(error) => self.store_failed("join", &error),
            },
            Err(error) => self.store_failed("beat", &error),
        }
    }
}
