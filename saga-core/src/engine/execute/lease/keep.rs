//! Keeping the claim of a call that takes long, and telling the call that it is no longer wanted.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use super::lease_keeper::LeaseKeeper;
use crate::engine::instance::{HeldLease, WorkItem};
use crate::engine::store_calls::catch_panic;
use crate::saga::Unfinished;
use crate::step::{CancelSignal, StepError};
use crate::store::{Lease, Status, Store};

/// What an exclusive call ends with whose claim is somebody else's, or may be.
const LOST: &str = "its claim could not be kept, so it was given up before another begins it";

impl<S: Store> LeaseKeeper<S> {
    /// Makes a call. Each third of a lease it is asked whether the saga still goes that way; if not, the signal is given.
    ///
    /// The claim of an exclusive step is renewed with it. When that fails, the call is dropped before anybody else can have
    /// the claim: also where this process stood still, the claim is looked at before the call goes on.
    pub(crate) async fn keep_lease<T>(
        &self,
        command: &WorkItem<S>,
        cancel: &CancelSignal,
        call: impl Future<Output = Result<T, Unfinished>>,
    ) -> Result<T, Unfinished> {
        let kept = command.held_lease.as_ref();
        let mut alarm = pin!(self.wake_at_the_end_of(kept));
        let mut look = pin!(self.watch_lease(command, cancel, kept));
        let mut call = pin!(call);
        let mut has_begun = false;
        poll_fn(|cx| {
            // A call that never waits needs no timers.
            if kept.is_none() && !std::mem::replace(&mut has_begun, true) {
                // Since the claim was held, the other side may have been asked for a while.
                if !self.may_call(command) {
                    return Poll::Ready(Err(StepError::not_sent(LOST).into()));
                }
                let ended = call.as_mut().poll(cx);
                if ended.is_ready() {
                    return ended;
                }
            }
            // Neither ends by itself.
            _ = alarm.as_mut().poll(cx);
            _ = look.as_mut().poll(cx);
            if kept.is_some_and(|kept| self.time_left(kept).is_zero()) {
                let lost = if has_begun { StepError::retry(LOST) } else { StepError::not_sent(LOST) };
                return Poll::Ready(Err(lost.into()));
            }
            has_begun = true;
            call.as_mut().poll(cx)
        })
        .await
    }

    /// Renews the lease of an exclusive step for its whole length and checks that this process is known to live;
    /// false if that is not possible now, so that another process begins the step, or this one does later.
    pub(crate) async fn take_lease(&self, command: &mut WorkItem<S>) -> bool {
        let kept = HeldLease::default();
        if self.scheduler.membership.alive_until() < self.ctx.env.now().saturating_add(self.ctx.settings.member_ttl / 2)
        {
            self.scheduler.membership.heartbeat_now().await;
        }
        self.renew_one(command, &CancelSignal::new(), &kept).await;
        let can_begin = !self.time_left(&kept).is_zero();
        command.held_lease = Some(kept);
        can_begin
    }

    /// For how long the claim is certainly this process' own.
    fn time_left(&self, kept: &HeldLease) -> Duration {
        if kept.member.load(Ordering::Acquire) != self.scheduler.membership.member_id().0 {
            return Duration::ZERO;
        }
        kept.until().min(self.scheduler.membership.alive_until()).saturating_sub(self.ctx.env.now())
    }

    /// Wakes the task that polls the call when the lease may belong to another process.
    async fn wake_at_the_end_of(&self, kept: Option<&HeldLease>) {
        while let Some(left) = kept.map(|kept| self.time_left(kept)).filter(|left| !left.is_zero()) {
            self.ctx.env.sleep(left).await;
        }
        std::future::pending::<()>().await;
    }

    async fn watch_lease(&self, command: &WorkItem<S>, cancel: &CancelSignal, kept: Option<&HeldLease>) {
        let third = self.ctx.settings.lease_ttl / 3;
        let rest = self.ctx.settings.lease_ttl.saturating_sub(third);
        // A report renews the claim as well, so that it is not due for so long.
        let spared = || {
            let until = kept.map_or(Duration::ZERO, HeldLease::until);
            until.saturating_sub(self.ctx.env.now().saturating_add(rest))
        };
        let mut pause = third;
        loop {
            self.ctx.env.sleep(pause).await;
            if let Some(kept) = kept.filter(|_| spared().is_zero()) {
                self.renew_one(command, cancel, kept).await;
            }
            if !command.is_undo() && !cancel.is_cancelled() && self.is_compensating(command).await {
                cancel.cancel();
            }
            pause = if spared().is_zero() { third } else { spared() };
        }
    }

    async fn renew_one(&self, command: &WorkItem<S>, cancel: &CancelSignal, kept: &HeldLease) {
        let ttl = self.ctx.settings.lease_ttl;
        let (began, owner) = (self.ctx.env.now(), self.scheduler.membership.member_id());
        match catch_panic("renew", self.ctx.store.renew(&[command.work], Lease { owner, ttl })).await {
            Ok(held) if held == [true] => {
                self.ctx.health.store_works("renew");
                kept.renewed(began.saturating_add(ttl), owner);
            }
            Ok(_) => kept.lose(),
            Err(error) => {
                self.ctx.health.store_failed("renew", &error);
                if self.time_left(kept) < ttl / 3 {
                    cancel.cancel();
                }
            }
        }
    }

    async fn is_compensating(&self, command: &WorkItem<S>) -> bool {
        match catch_panic("sagas_by_id", self.ctx.store.sagas_by_id(&[command.saga.id])).await {
            Ok(sagas) => sagas.iter().any(|saga| saga.status == Status::Compensating || saga.status.is_ended()),
            Err(error) => {
                self.ctx.health.store_failed("sagas_by_id", &error);
                false
            }
        }
    }
}
