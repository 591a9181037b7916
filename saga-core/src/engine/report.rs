//! Writing down what a call reports of how far it is.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use super::asking::catch_panic;
use super::attempt::AttemptResult;
use super::command::WorkItem;
use super::in_flight::SagaInstance;
use super::prepared::AttemptDetails;
use super::shared::EngineContext;
use crate::machine::Ending;
use crate::step::{CancelSignal, ReportLimit, Reporting, Reports, StepContext};
use crate::store::{Lease, Store, StoreError};

/// Why a step in a transaction reports nothing.
pub(super) const IN_TRANSACTION: &str =
    "a step in a transaction reports no progress: nobody could see it before the step's own commit";
/// Why a resolution reports nothing.
pub(super) const IN_RESOLUTION: &str = "a resolution reports no progress: it asks how far the step came";

impl<S: Store> EngineContext<S> {
    /// Makes a call, and meanwhile writes down what it reports. When this returns, nothing is written any more, and what a
    /// call reported last that was not done is there for the next one.
    ///
    /// A call that reports nothing pays for nothing.
    pub(super) async fn while_reporting(
        self: &Arc<Self>,
        command: &WorkItem<S>,
        ctx: &StepContext,
        cancel: &CancelSignal,
        attempt: impl Future<Output = AttemptResult>,
    ) -> AttemptResult {
        let has_ended = AtomicBool::new(false);
        let mut attempt = pin!(attempt);
        let mut writing = pin!(self.write_reports(command, ctx.reports(), cancel, &has_ended));
        let mut ended: Option<AttemptResult> = None;
        let mut has_reported = false;
        poll_fn(|cx| {
            if ended.is_none()
                && let Poll::Ready(attempted) = attempt.as_mut().poll(cx)
            {
                // With the step's end its reports are gone.
                if attempted.ending == Ending::Done {
                    return Poll::Ready(attempted);
                }
                has_ended.store(true, Ordering::Release);
                let reported = ctx.reports().latest();
                ended =
                    Some(AttemptResult { findings: AttemptDetails { reported, ..attempted.findings }, ..attempted });
            }
            // A call reports while it is polled, so this is the time to look.
            has_reported |= ctx.reports().is_waiting();
            if has_reported && writing.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            ended.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Keeps what a command reported in the state of its saga, since its row goes.
    pub(super) fn keep_report(command: &WorkItem<S>, saga: &mut SagaInstance<S>, findings: &AttemptDetails) {
        let last = findings.reported.as_deref().or(command.reported.as_ref().map(|reported| &*reported.progress));
        if let Some(Ok(report)) = last.map(std::str::from_utf8) {
            saga.state.keep_report(command.command, report.to_owned());
        }
    }

    /// Writes until the call has ended and nothing waits. It is to be polled behind each poll of the call.
    async fn write_reports(
        self: &Arc<Self>,
        command: &WorkItem<S>,
        reports: &Reports,
        cancel: &CancelSignal,
        has_ended: &AtomicBool,
    ) {
        let has_ended = || has_ended.load(Ordering::Acquire);
        let mut number = command.reported.as_ref().map_or(0, |reported| reported.number);
        let mut backoff = self.backoff(0);
        loop {
            when(|| reports.is_waiting() || has_ended()).await;
            let Some(report) = reports.take() else { return };
            number += 1;
            let next_at = self.env.now().saturating_add(self.settings.report_interval);
            match self.write_report(command, number, &report).await {
                Ok(true) => {
                    backoff = self.backoff(0);
                    self.tell_report(command, number, &report);
                    let mut pause = self.env.sleep(next_at.saturating_sub(self.env.now()));
                    poll_fn(|cx| if has_ended() { Poll::Ready(()) } else { pause.as_mut().poll(cx) }).await;
                }
                Ok(false) => {
                    cancel.cancel();
                    if let Some(kept) = &command.held_lease {
                        kept.lose();
                    }
                    polled_again().await;
                    return when(has_ended).await;
                }
                Err(error) => {
                    self.store_failed("report", &error);
                    if self.has_stopped() {
                        return when(has_ended).await;
                    }
                    reports.put_back();
                    self.pause_for_store(&mut backoff).await;
                }
            }
        }
    }

    /// Writes one report, with the heartbeat of an exclusive step.
    async fn write_report(&self, command: &WorkItem<S>, number: u64, report: &[u8]) -> Result<bool, StoreError> {
        let (began, ttl) = (self.env.now(), self.settings.lease_ttl);
        let lease = command.held_lease.as_ref().map(|_| Lease { owner: self.member_id(), ttl });
        let is_kept = catch_panic("report", self.store.report(command.work, number, report, lease)).await?;
        self.store_works("report");
        if let (true, Some(kept), Some(lease)) = (is_kept, &command.held_lease, lease) {
            kept.renewed(began.saturating_add(ttl), lease.owner);
        }
        Ok(is_kept)
    }

    /// What a call of this command may report, and what the call before it reported.
    pub(super) fn reporting(&self, command: &WorkItem<S>) -> Reporting {
        let limit = if command.effect().is_outside() {
            ReportLimit::Bytes(self.settings.report_bytes_max)
        } else {
            ReportLimit::Refused(IN_TRANSACTION)
        };
        let on_row = command.reported.as_ref().map(|reported| &*reported.progress);
        let kept = || command.saga.state.report_of(command.command).map(str::as_bytes);
        let before = on_row.or_else(kept).map(Arc::from);
        Reporting { limit: Some(limit), before }
    }
}

/// Waits for what is looked at with every poll.
async fn when(holds: impl Fn() -> bool) {
    poll_fn(|_| if holds() { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Has the whole task polled once more.
async fn polled_again() {
    let mut was_polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut was_polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
