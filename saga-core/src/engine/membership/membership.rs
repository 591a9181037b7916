//! Sends the heartbeats of this process, and rejoins the store when this process counted as dead.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::engine::context::EngineContext;
use crate::engine::queue::PollTimer;
use crate::engine::store_calls::catch_panic;
use crate::env::Pause;
use crate::log;
use crate::store::{MemberId, Store};

/// This process as a member of its store.
pub(crate) struct Membership<S: Store> {
    ctx: Arc<EngineContext<S>>,
    poll_timer: Arc<PollTimer>,
    member: AtomicI64,
    /// Until when the member counts as alive, in nanoseconds of this process' clock.
    alive_until: AtomicU64,
    /// From when on this process recovers the rows of dead members, in nanoseconds of its clock.
    takes_over_from: AtomicU64,
    /// Held while a heartbeat is sent.
    heartbeat: tokio::sync::Mutex<()>,
}

impl<S: Store> Membership<S> {
    pub(crate) fn new(ctx: Arc<EngineContext<S>>, poll_timer: Arc<PollTimer>, member: MemberId) -> Self {
        Self {
            ctx,
            poll_timer,
            member: AtomicI64::new(member.0),
            alive_until: AtomicU64::new(0),
            takes_over_from: AtomicU64::new(0),
            heartbeat: tokio::sync::Mutex::new(()),
        }
    }
}

impl<S: Store> Membership<S> {
    /// This process as the owner of leases; `None` while it takes no new work.
    pub(crate) fn member(&self) -> Option<MemberId> {
        let member = self.member.load(Ordering::Acquire);
        (member > 0 && !self.ctx.lifecycle.is_stopping()).then_some(MemberId(member))
    }

    /// This process as the store knows it, also during a shutdown.
    pub(crate) fn member_id(&self) -> MemberId {
        MemberId(self.member.load(Ordering::Acquire))
    }

    pub(crate) fn set_member(&self, member: MemberId) {
        self.member.store(member.0, Ordering::Release);
    }

    /// Until when no other process counts this one as dead.
    pub(crate) fn alive_until(&self) -> Duration {
        Duration::from_nanos(self.alive_until.load(Ordering::Acquire))
    }

    pub(crate) fn set_alive_until(&self, moment: Duration) {
        self.alive_until.store(u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Whether this process certainly counts as alive: no other process can have its leases.
    pub(crate) fn is_alive(&self) -> bool {
        self.ctx.env.now() < self.alive_until()
    }

    /// Whether this process recovers the work of members that seem dead.
    pub(crate) fn takes_over(&self) -> bool {
        self.ctx.env.now() >= Duration::from_nanos(self.takes_over_from.load(Ordering::Acquire))
    }

    /// Recovers nothing until this moment: other members have this time to come back.
    pub(crate) fn take_nothing_over_until(&self, moment: Duration) {
        self.takes_over_from.store(u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Sends heartbeats until it is dropped.
    pub(crate) async fn run_heartbeat(self: Arc<Self>) {
        loop {
            self.ctx.env.pause(Pause::of(self.ctx.settings.member_ttl / 4)).await;
            self.heartbeat_now().await;
        }
    }

    /// Sends one heartbeat. A process that counts as dead rejoins as another member, and keeps those of its rows that no other process
    /// has claimed: the epoch of a row tells.
    ///
    /// If one process cannot reach the store, often none can, and all look dead when the store is back. So a process whose heartbeat
    /// failed recovers nothing until the others had time to come back.
    pub(crate) async fn heartbeat_now(&self) {
        let known_until = self.alive_until();
        let _one_at_a_time = self.heartbeat.lock().await;
        if self.alive_until() != known_until {
            // Another heartbeat was sent meanwhile.
            return;
        }
        let ttl = self.ctx.env.member_ttl(self.ctx.settings.member_ttl);
        let began = self.ctx.env.now();
        match catch_panic("heartbeat", self.ctx.store.heartbeat(self.member_id(), ttl)).await {
            Ok(true) => {
                self.ctx.health.store_works("heartbeat");
                self.set_alive_until(began.saturating_add(ttl));
            }
            Ok(false) => {
                self.take_nothing_over_until(began.saturating_add(ttl));
                let began = self.ctx.env.now();
                match catch_panic("rejoin", self.ctx.store.rejoin(self.member_id(), ttl)).await {
                    Ok(incarnation) => {
                        let former_member = self.member_id().0;
                        log::warn!(member = incarnation.member.0, former_member, "member rejoined");
                        self.ctx.health.store_works("rejoin");
                        self.set_member(incarnation.member);
                        self.set_alive_until(began.saturating_add(ttl));
                        // Work that is due now can be claimed again.
                        self.poll_timer.announce(self.ctx.env.now());
                    }
                    Err(error) => self.ctx.health.store_failed("rejoin", &error),
                }
            }
            Err(error) => {
                self.take_nothing_over_until(self.ctx.env.now().saturating_add(ttl));
                self.ctx.health.store_failed("heartbeat", &error);
            }
        }
    }

    /// Waits until this process counts as alive; false if it stops first. A process that may count as dead claims nothing: the
    /// unleased work may be its own.
    pub(crate) async fn wait_until_alive(&self) -> bool {
        while !self.is_alive() {
            if self.ctx.lifecycle.is_stopping() {
                return false;
            }
            self.heartbeat_now().await;
            if !self.is_alive() {
                self.ctx.env.sleep(self.ctx.settings.poll_interval).await;
            }
        }
        true
    }
}
