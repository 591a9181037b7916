//! Ending a runtime: what is under way ends, the rest is given back.

use std::sync::Arc;

use super::inbox::Inlet;
use super::shared::Shared;
use crate::env::BoxFuture;
use crate::store::{Hint, Store};
use crate::transport::Incoming;

impl<S: Store> Shared<S> {
    /// Runs the tasks of the runtime until it stops.
    pub(super) fn spawn_all(self: &Arc<Self>, incoming: Vec<Option<Box<dyn Incoming>>>) {
        let spawn = |task| self.spawn(task);
        for _ in 0..self.settings.transactions {
            spawn(Box::pin(Arc::clone(self).serve_transactions()));
        }
        spawn(Box::pin(Arc::clone(self).serve_calls()));
        spawn(Box::pin(Arc::clone(self).serve_suspects()));
        spawn(Box::pin(Arc::clone(self).serve_starts()));
        spawn(Box::pin({
            let shared = Arc::clone(self);
            async move { shared.serve_recorder().await }
        }));
        spawn(Box::pin(Arc::clone(self).poll()));
        spawn(Box::pin(Arc::clone(self).beat()));
        spawn(Box::pin(Arc::clone(self).relay()));
        spawn(Box::pin(Arc::clone(self).serve_direct()));
        spawn(Box::pin(Arc::clone(self).listen()));
        spawn(Box::pin({
            let shared = Arc::clone(self);
            async move { shared.watch().await }
        }));
        for (service, first) in self.services.iter().zip(incoming) {
            spawn(Box::pin(Arc::clone(self).receive(service.clone(), Inlet::Messages, first)));
            spawn(Box::pin(Arc::clone(self).receive(service.clone(), Inlet::DeadLetters, None)));
        }
        if !self.services.is_empty() {
            spawn(Box::pin(Arc::clone(self).poll_inbox()));
        }
    }

    /// Runs a task on its own, until the runtime stops.
    pub(super) fn spawn(&self, task: BoxFuture<'static, ()>) {
        let stopped = self.stopped.clone();
        self.env.spawn(Box::pin(async move {
            tokio::select! {
                biased;
                () = stopped.cancelled() => {}
                () = task => {}
            }
        }));
    }

    /// Takes nothing new, waits for what is under way, and gives the rest back.
    pub(super) async fn drain(self: &Arc<Self>) {
        self.stopping.cancel();
        // The poller may wait for work or for a place; it looks whether it should stop when it is woken.
        self.announce_work(std::time::Duration::ZERO);
        let mut left = self.transactions.close();
        left.extend(self.calls.close());
        left.extend(self.suspects.close());
        let count = left.len();
        let ended = crate::env::timeout(&*self.env, self.settings.drain_limit, async {
            self.give_back_all(left).await;
            self.tasks.idle().await;
        });
        if ended.await.is_err() {
            let limit = self.settings.drain_limit;
            tracing::warn!(?limit, "not everything under way ended in time; it is taken up again after its lease");
        }
        self.stop();
        if let Err(error) = self.store.leave(self.member_id()).await {
            tracing::warn!(%error, "leaving failed; the store finds out by itself");
        }
        // What is left has no owner any more.
        self.store.hint(Hint::Work);
        self.store.hint(Hint::Outbox);
        tracing::info!(given_back = count, "the runtime has ended");
    }

    /// Ends every task at its next await.
    pub(super) fn stop(&self) {
        self.stopping.cancel();
        self.stopped.cancel();
    }
}
