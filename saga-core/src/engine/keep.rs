//! Keeping the claim of a call that takes long, and telling the call that it is no longer wanted.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use super::command::Command;
use super::shared::Shared;
use crate::saga::Unfinished;
use crate::step::{CancelSignal, StepError};
use crate::store::{Lease, Status, Store};

/// A moment of this process' clock that may move.
struct Moment(AtomicU64);

impl<S: Store> Shared<S> {
    /// Makes a call. Each third of a lease it is asked whether the saga still goes that way; if not, the signal is given.
    ///
    /// The claim of an exclusive step is renewed with it. When that fails, the call is dropped before anybody else can have
    /// the claim: also where this process stood still, the claim is looked at before the call goes on.
    pub(super) async fn keep<T>(
        &self,
        command: &Command<S>,
        cancel: &CancelSignal,
        call: impl Future<Output = Result<T, Unfinished>>,
    ) -> Result<T, Unfinished> {
        let until = Moment::at(if command.options().exclusive { command.lease_until } else { Duration::MAX });
        let mut alarm = pin!(self.wake_at_the_end_of(&until));
        let mut look = pin!(self.look_after(command, cancel, &until));
        let mut call = pin!(call);
        let mut has_begun = false;
        poll_fn(|cx| {
            // A call that never waits needs no timers.
            if !std::mem::replace(&mut has_begun, true)
                && let Poll::Ready(ended) = call.as_mut().poll(cx)
            {
                return Poll::Ready(ended);
            }
            // Neither ends by itself.
            _ = alarm.as_mut().poll(cx);
            _ = look.as_mut().poll(cx);
            if self.claim_lasts_until(&until) <= self.env.now() {
                let error =
                    StepError::retry("its claim could not be kept, so it was given up before another begins it");
                return Poll::Ready(Err(error.into()));
            }
            call.as_mut().poll(cx)
        })
        .await
    }

    /// How long a lease has to last when an attempt begins: that of an exclusive step is renewed while it runs.
    pub(super) fn lease_needed(&self, command: &Command<S>) -> Duration {
        if command.options().exclusive { self.settings.lease_ttl / 2 } else { command.time_limit() }
    }

    /// Until when the claim is certainly this process' own.
    fn claim_lasts_until(&self, until: &Moment) -> Duration {
        match until.get() {
            Duration::MAX => Duration::MAX,
            lease_until => lease_until.min(self.alive_until()),
        }
    }

    /// Wakes whoever polls it when the claim may be somebody else's.
    async fn wake_at_the_end_of(&self, until: &Moment) {
        loop {
            let left = self.claim_lasts_until(until).saturating_sub(self.env.now());
            if left.is_zero() || until.get() == Duration::MAX {
                return std::future::pending().await;
            }
            self.env.sleep(left).await;
        }
    }

    async fn look_after(&self, command: &Command<S>, cancel: &CancelSignal, until: &Moment) {
        let ttl = self.settings.lease_ttl;
        loop {
            self.env.sleep(ttl / 3).await;
            if until.get() != Duration::MAX {
                self.renew_one(command, cancel, until).await;
            }
            if !command.is_undo() && !cancel.is_cancelled() && self.has_turned_round(command).await {
                cancel.cancel();
            }
        }
    }

    async fn renew_one(&self, command: &Command<S>, cancel: &CancelSignal, until: &Moment) {
        let ttl = self.settings.lease_ttl;
        let began = self.env.now();
        match self.store.renew(&[command.work], Lease { owner: self.member_id(), ttl }).await {
            Ok(held) if held == [true] => {
                self.store_works("renew");
                until.set(began + ttl);
            }
            Ok(_) => until.set(Duration::ZERO),
            Err(error) => {
                self.store_failed("renew", &error);
                if until.get().saturating_sub(self.env.now()) < ttl / 3 {
                    cancel.cancel();
                }
            }
        }
    }

    async fn has_turned_round(&self, command: &Command<S>) -> bool {
        match self.store.sagas_by_id(&[command.saga.id]).await {
            Ok(sagas) => sagas.iter().any(|saga| saga.status == Status::Compensating || saga.status.is_ended()),
            Err(error) => {
                self.store_failed("sagas_by_id", &error);
                false
            }
        }
    }
}

impl Moment {
    fn at(moment: Duration) -> Self {
        let new = Self(AtomicU64::new(0));
        new.set(moment);
        new
    }

    fn set(&self, moment: Duration) {
        self.0.store(u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// What does not fit lies beyond every other moment.
    fn get(&self) -> Duration {
        match self.0.load(Ordering::Acquire) {
            u64::MAX => Duration::MAX,
            nanos => Duration::from_nanos(nanos),
        }
    }
}
