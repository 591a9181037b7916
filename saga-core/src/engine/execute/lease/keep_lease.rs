//! Renews the lease of a long call, and cancels the call when its saga starts compensating.

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

/// The error of an exclusive call whose lease another process has, or may have soon.
const LOST: &str = "its claim could not be held, so it was given up before another begins it";

impl<S: Store> LeaseKeeper<S> {
    /// Runs a call. At each third of a lease it checks whether the saga has started compensating, and then sets `cancel`.
    ///
    /// The lease of an exclusive step is renewed as well. If that fails, the call is dropped before another process can claim the
    /// step. The lease is checked before each poll, so this holds even after the process was suspended.
    pub(crate) async fn keep_lease<T>(
        &self,
        command: &WorkItem<S>,
        cancel: &CancelSignal,
        call: impl Future<Output = Result<T, Unfinished>>,
    ) -> Result<T, Unfinished> {
        let held = command.held_lease.as_ref();
        let mut alarm = pin!(self.wake_at_end_of(held));
        let mut watch = pin!(self.watch_lease(command, cancel, held));
        let mut call = pin!(call);
        let mut has_begun = false;
        poll_fn(|cx| {
            // A call that is ready at its first poll needs no timers.
            if held.is_none() && !std::mem::replace(&mut has_begun, true) {
                // The resolution may have taken a while since the lease was checked.
                if !self.may_call(command) {
                    return Poll::Ready(Err(StepError::not_sent(LOST).into()));
                }
                let ended = call.as_mut().poll(cx);
                if ended.is_ready() {
                    return ended;
                }
            }
            // Neither of them ends.
            _ = alarm.as_mut().poll(cx);
            _ = watch.as_mut().poll(cx);
            if held.is_some_and(|held| self.time_left(held).is_zero()) {
                let lost = if has_begun { StepError::retry(LOST) } else { StepError::not_sent(LOST) };
                return Poll::Ready(Err(lost.into()));
            }
            has_begun = true;
            call.as_mut().poll(cx)
        })
        .await
    }

    /// Renews the lease of an exclusive step for its whole length, and makes sure of this process's heartbeat; false if that is
    /// not possible now: the step begins later, or in another process.
    pub(crate) async fn take_lease(&self, command: &mut WorkItem<S>) -> bool {
        let held = HeldLease::default();
        if self.scheduler.membership.alive_until() < self.ctx.env.now().saturating_add(self.ctx.settings.member_ttl / 2)
        {
            self.scheduler.membership.heartbeat_now().await;
        }
        self.renew_held(command, &CancelSignal::new(), &held).await;
        let can_begin = !self.time_left(&held).is_zero();
        command.held_lease = Some(held);
        can_begin
    }

    /// For how long the lease certainly belongs to this process.
    fn time_left(&self, held: &HeldLease) -> Duration {
        if held.member.load(Ordering::Acquire) != self.scheduler.membership.member_id().0 {
            return Duration::ZERO;
        }
        held.until().min(self.scheduler.membership.alive_until()).saturating_sub(self.ctx.env.now())
    }

    /// Wakes the polling task when the lease ends.
    async fn wake_at_end_of(&self, held: Option<&HeldLease>) {
        while let Some(left) = held.map(|held| self.time_left(held)).filter(|left| !left.is_zero()) {
            self.ctx.env.sleep(left).await;
        }
        std::future::pending::<()>().await;
    }

    async fn watch_lease(&self, command: &WorkItem<S>, cancel: &CancelSignal, held: Option<&HeldLease>) {
        let third = self.ctx.settings.lease_ttl / 3;
        let rest = self.ctx.settings.lease_ttl.saturating_sub(third);
        // A progress report renews the lease as well, and postpones the next renewal.
        let time_to_renewal = || {
            let until = held.map_or(Duration::ZERO, HeldLease::until);
            until.saturating_sub(self.ctx.env.now().saturating_add(rest))
        };
        let mut pause = third;
        loop {
            self.ctx.env.sleep(pause).await;
            if let Some(held) = held.filter(|_| time_to_renewal().is_zero()) {
                self.renew_held(command, cancel, held).await;
            }
            if !command.is_undo() && !cancel.is_cancelled() && self.is_compensating(command).await {
                cancel.cancel();
            }
            pause = if time_to_renewal().is_zero() { third } else { time_to_renewal() };
        }
    }

    async fn renew_held(&self, command: &WorkItem<S>, cancel: &CancelSignal, held: &HeldLease) {
        let ttl = self.ctx.settings.lease_ttl;
        let (began, owner) = (self.ctx.env.now(), self.scheduler.membership.member_id());
        match catch_panic("renew", self.ctx.store.renew(&[command.work], Lease { owner, ttl })).await {
            Ok(renewed) if renewed == [true] => {
                self.ctx.health.store_works("renew");
                held.renewed(began.saturating_add(ttl), owner);
            }
            Ok(_) => held.lose(),
            Err(error) => {
                self.ctx.health.store_failed("renew", &error);
                if self.time_left(held) < ttl / 3 {
                    cancel.cancel();
                }
            }
        }
    }

    async fn is_compensating(&self, command: &WorkItem<S>) -> bool {
        match catch_panic("sagas_by_id", self.ctx.store.sagas_by_id(&[command.saga.id])).await {
            Ok(sagas) => {
                self.ctx.health.store_works("sagas_by_id");
                sagas.iter().any(|saga| saga.status == Status::Compensating || saga.status.is_ended())
            }
            Err(error) => {
                self.ctx.health.store_failed("sagas_by_id", &error);
                false
            }
        }
    }
}
