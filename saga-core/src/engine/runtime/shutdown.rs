//! Ending a runtime: running steps end, the rest is given back to the store.

use std::sync::Arc;

use super::engine::Engine;
use crate::engine::store_calls::catch_panic;
use crate::log;
use crate::store::{Hint, Store};

impl<S: Store> Engine<S> {
    /// Takes nothing new, waits for running steps, and gives the rest back to the store.
    pub(crate) async fn shut_down(self: &Arc<Self>) {
        self.ctx.lifecycle.stopping.cancel();
        // The poller may wait for work or for a place; it looks whether it should stop when it is woken.
        self.committer.scheduler.announce_work(std::time::Duration::ZERO);
        let mut left = self.committer.scheduler.transactions.close();
        left.extend(self.committer.scheduler.calls.close());
        left.extend(self.committer.scheduler.recovered.close());
        left.extend(self.committer.scheduler.recovered_again.close());
        let count = left.len();
        let ended = crate::env::timeout(&*self.ctx.env, self.ctx.settings.shutdown_timeout, async {
            self.committer.scheduler.release_all(left).await;
            self.ctx.lifecycle.idle().await;
        });
        if ended.await.is_err() {
            let limit = self.ctx.settings.shutdown_timeout;
            log::warn!(?limit, "shutdown timed out");
        }
        self.stop();
        if let Err(error) =
            catch_panic("leave", self.ctx.store.leave(self.committer.scheduler.membership.member_id())).await
        {
            log::warn!(%error, "member not removed at shutdown");
        }
        // Rows that were given back have no owner, so other processes may claim them.
        self.ctx.store.hint(Hint::Work);
        self.ctx.store.hint(Hint::Outbox);
        log::info!(count, "runtime stopped");
    }

    /// Ends every task at its next await. Starts and events whose callers still wait are answered.
    pub(super) fn stop(&self) {
        self.ctx.lifecycle.stop();
        self.starter.close();
        self.committer.recorder.close();
    }
}
