//! Ending a runtime: what is under way ends, the rest is given back.

use std::sync::{Arc, Mutex, PoisonError};

use super::asking::catch_panic;
use super::inbox::InboundSource;
use super::shared::EngineContext;
use crate::log;
use crate::store::{Hint, Store};
use crate::transport::Incoming;

impl<S: Store> EngineContext<S> {
    /// Runs the tasks of the runtime until it stops.
    pub(super) fn spawn_all(self: &Arc<Self>, incoming: Vec<Option<Box<dyn Incoming>>>) {
        for _ in 0..self.settings.transactions_max {
            self.run_lane("transactions", Self::serve_transactions);
        }
        self.run_lane("calls", Self::serve_calls);
        for _ in 0..self.settings.recoveries_max {
            self.run_lane("recoveries", |shared| shared.serve_recovered(false));
        }
        self.run_lane("recoveries", |shared| shared.serve_recovered(true));
        self.run_lane("begins", Self::serve_begins);
        self.run_lane("renewals", Self::renew_queued);
        self.run_lane("starts", Self::serve_starts);
        self.run_lane("recorder", |shared| async move { shared.serve_recorder().await });
        self.run_lane("poll", Self::poll);
        self.run_lane("beat", Self::run_heartbeat);
        self.run_lane("relay", Self::relay);
        self.run_lane("direct", Self::serve_send_queue);
        self.run_lane("hints", Self::listen);
        self.run_lane("watch", |shared| async move { shared.watch().await });
        for (service, first) in self.services.iter().zip(incoming) {
            let (service, first) = (service.clone(), Mutex::new(first));
            let of_letters = service.clone();
            self.run_lane("receive", move |shared| {
                // Whoever begins again subscribes anew.
                let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
                shared.receive(service.clone(), InboundSource::Messages, first)
            });
            self.run_lane("receive dead letters", move |shared| {
                shared.receive(of_letters.clone(), InboundSource::DeadLetters, None)
            });
        }
        if !self.services.is_empty() {
            self.run_lane("inbox", Self::poll_inbox);
        }
    }

    /// Takes nothing new, waits for what is under way, and gives the rest back.
    pub(super) async fn shut_down(self: &Arc<Self>) {
        self.stopping.cancel();
        // The poller may wait for work or for a place; it looks whether it should stop when it is woken.
        self.announce_work(std::time::Duration::ZERO);
        let mut left = self.transactions.close();
        left.extend(self.calls.close());
        left.extend(self.recovered.close());
        left.extend(self.recovered_again.close());
        let count = left.len();
        let ended = crate::env::timeout(&*self.env, self.settings.shutdown_timeout, async {
            self.release_all(left).await;
            self.tasks.idle().await;
        });
        if ended.await.is_err() {
            let limit = self.settings.shutdown_timeout;
            log::warn!(?limit, "not everything under way ended in time; it is taken up again after its lease");
        }
        self.stop();
        if let Err(error) = catch_panic("leave", self.store.leave(self.member_id())).await {
            log::warn!(%error, "leaving failed; the store finds out by itself");
        }
        // What is left has no owner any more.
        self.store.hint(Hint::Work);
        self.store.hint(Hint::Outbox);
        log::info!(given_back = count, "the runtime has ended");
    }

    /// Ends every task at its next await.
    pub(super) fn stop(&self) {
        self.stopping.cancel();
        self.stopped.cancel();
    }
}
