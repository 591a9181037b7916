//! Saying that this process is alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::engine::context::EngineContext;
use crate::engine::queue::PollTimer;
use crate::engine::store_calls::catch_panic;
use crate::log;
use crate::store::{MemberId, Store};

/// This process as a member of its store.
pub(crate) struct Membership<S: Store> {
    ctx: Arc<EngineContext<S>>,
    poll_timer: Arc<PollTimer>,
    member: AtomicI64,
    /// Until when the member counts as alive, in nanoseconds of this process' clock.
    alive_until: AtomicU64,
    /// From when on this process takes over rows of members that vanished, in nanoseconds of its clock.
    takes_over_from: AtomicU64,
    /// Held while a heartbeat is under way.
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
    /// This process as the owner of leases; nothing while it takes no new work.
    pub(crate) fn member(&self) -> Option<MemberId> {
        let member = self.member.load(Ordering::Acquire);
        (member > 0 && !self.ctx.lifecycle.is_stopping()).then_some(MemberId(member))
    }

    /// This process as it is known to the store, also while it stops.
    pub(crate) fn member_id(&self) -> MemberId {
        MemberId(self.member.load(Ordering::Acquire))
    }

    pub(crate) fn set_member(&self, member: MemberId) {
        self.member.store(member.0, Ordering::Release);
    }

    /// Until when no process takes this one for dead.
    pub(crate) fn alive_until(&self) -> Duration {
        Duration::from_nanos(self.alive_until.load(Ordering::Acquire))
    }

    pub(crate) fn set_alive_until(&self, moment: Duration) {
        self.alive_until.store(u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Whether this process is certainly known to live: no other process has its leases.
    pub(crate) fn is_alive(&self) -> bool {
        self.ctx.env.now() < self.alive_until()
    }

    /// Whether it takes over what others seem to have left.
    pub(crate) fn takes_over(&self) -> bool {
        self.ctx.env.now() >= Duration::from_nanos(self.takes_over_from.load(Ordering::Acquire))
    }

    /// Others are given this time to come back before anything of theirs is taken over.
    pub(crate) fn take_nothing_over_until(&self, moment: Duration) {
        self.takes_over_from.store(u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Beats until it is dropped.
    pub(crate) async fn run_heartbeat(self: Arc<Self>) {
        loop {
            self.ctx.env.sleep(self.ctx.settings.member_ttl / 4).await;
            self.heartbeat_now().await;
        }
    }

    /// Sends one heartbeat. A process that was taken for dead comes back as another member, and keeps those of its
    /// rows that no other process took meanwhile. The epoch of a row says whether it is one of them.
    ///
    /// When one process cannot reach the store, often none can: all of them look dead when it is back. So a process
    /// that could not send its heartbeat recovers nothing for as long as others need to come back.
    pub(crate) async fn heartbeat_now(&self) {
        let known_until = self.alive_until();
        let _one_at_a_time = self.heartbeat.lock().await;
        if self.alive_until() != known_until {
            // Another one was answered meanwhile.
            return;
        }
        let ttl = self.ctx.settings.member_ttl;
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
                        // What it had asked for is answered only now.
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

    /// Waits until this process is known to live; false if it stops first. A process that may be dead claims nothing:
    /// the unleased work may be its own.
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
