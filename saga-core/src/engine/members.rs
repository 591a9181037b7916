//! Saying that this process is alive.

use std::sync::Arc;

use super::asking::catch_panic;
use super::shared::EngineContext;
use crate::log;
use crate::store::Store;

impl<S: Store> EngineContext<S> {
    /// Beats until it is dropped.
    pub(super) async fn run_heartbeat(self: Arc<Self>) {
        loop {
            self.env.sleep(self.settings.member_ttl / 4).await;
            self.heartbeat_now().await;
        }
    }

    /// Beats once. A process that was taken for dead comes back as another member, and takes along what nobody took of its
    /// rows meanwhile; whether a row is among them its epoch says.
    ///
    /// While the store cannot be reached by one process, it often cannot be by any: all of them look dead when it is back.
    /// So whoever could not beat takes nothing over for as long as others need to come back.
    pub(super) async fn heartbeat_now(&self) {
        let known_until = self.alive_until();
        let _one_at_a_time = self.heartbeat.lock().await;
        if self.alive_until() != known_until {
            // Another one was answered meanwhile.
            return;
        }
        let ttl = self.settings.member_ttl;
        let began = self.env.now();
        match catch_panic("beat", self.store.beat(self.member_id(), ttl)).await {
            Ok(true) => {
                self.store_works("beat");
                self.set_alive_until(began.saturating_add(ttl));
            }
            Ok(false) => {
                self.take_nothing_over_until(began.saturating_add(ttl));
                let began = self.env.now();
                match catch_panic("rejoin", self.store.rejoin(self.member_id(), ttl)).await {
                    Ok(incarnation) => {
                        log::warn!(
                            former = self.member_id().0,
                            member = incarnation.member.0,
                            "this process was taken for dead; it goes on as another member"
                        );
                        self.store_works("rejoin");
                        self.set_member(incarnation.member);
                        self.set_alive_until(began.saturating_add(ttl));
                        // What it had asked for is answered only now.
                        self.announce_work(std::time::Duration::ZERO);
                    }
                    Err(error) => self.store_failed("rejoin", &error),
                }
            }
            Err(error) => {
                self.take_nothing_over_until(self.env.now().saturating_add(ttl));
                self.store_failed("beat", &error);
            }
        }
    }

    /// Waits until this process is known to live; false where it stops first. Whoever may be dead claims nothing: what is
    /// free then may be its own.
    pub(super) async fn wait_until_alive(&self) -> bool {
        while !self.is_alive() {
            if self.is_stopping() {
                return false;
            }
            self.heartbeat_now().await;
            if !self.is_alive() {
                self.env.sleep(self.settings.poll_interval).await;
            }
        }
        true
    }
}
