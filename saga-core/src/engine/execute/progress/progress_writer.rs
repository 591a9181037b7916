//! Writes the progress reports of a running call to its work row.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use crate::engine::commit::{Committer, changes};
use crate::engine::context::EngineContext;
use crate::engine::instance::{AttemptDetails, AttemptResult, WorkItem};
use crate::engine::message::{Messages, content};
use crate::engine::store_calls::catch_panic;
use crate::log;
use crate::machine::Ending;
use crate::step::{CancelSignal, ReportLimit, Reporting, Reports, StepContext};
use crate::store::{Lease, Store, StoreError};

/// Why a step in a transaction reports nothing.
pub(crate) const IN_TRANSACTION: &str =
    "a step in a transaction reports no progress: a report would be visible only after the step's own commit";

/// Why a resolution reports nothing.
pub(crate) const IN_RESOLUTION: &str = "a resolution reports no progress: it asks how far the step came";

/// Waits until the condition holds; it is checked at every poll of the task.
pub(crate) async fn when(holds: impl Fn() -> bool) {
    poll_fn(|_| if holds() { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Yields once, so that the whole task is polled again.
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

/// Writes the progress reports of calls.
pub(crate) struct ProgressWriter<S: Store> {
    ctx: Arc<EngineContext<S>>,
    committer: Arc<Committer<S>>,
    messages: Arc<Messages>,
}

impl<S: Store> ProgressWriter<S> {
    pub(crate) fn new(committer: Arc<Committer<S>>, messages: Arc<Messages>) -> Self {
        Self { ctx: Arc::clone(&committer.ctx), committer, messages }
    }
}

impl<S: Store> ProgressWriter<S> {
    /// Sends a report that was just written to the service that asked for the step. The call does not wait for it.
    pub(crate) fn send_report(self: &Arc<Self>, command: &WorkItem<S>, number: u64, report: &[u8]) {
        let Some(payload) = content(command.fence(), number, report) else { return };
        let Some(message) = self.messages.report_message(&command.saga, command.is_undo(), payload) else { return };
        let (this, under_way) = (Arc::clone(self), self.ctx.lifecycle.enter());
        let (tenant, saga, step) = (command.saga.tenant.clone(), command.saga.key.clone(), command.step_id());
        self.ctx.lifecycle.spawn(
            "report",
            Box::pin(async move {
                match this.committer.recorder.record(changes::send(vec![message])).await {
                    Ok(_) => this.committer.outbox.wake_relay(),
                    Err(error) => {
                        log::debug!(tenant = tenant.as_str(), %saga, %step, %error, "progress report not sent");
                    }
                }
                drop(under_way);
            }),
        );
    }

    /// Runs a call, and writes its reports meanwhile. When it returns, nothing more is written. The last report of a call that did
    /// not succeed is kept for the next attempt. A call without reports costs nothing.
    pub(crate) async fn while_reporting(
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
                // A done step needs no reports.
                if attempted.ending == Ending::Done {
                    return Poll::Ready(attempted);
                }
                has_ended.store(true, Ordering::Release);
                let reported = ctx.reports().latest();
                ended =
                    Some(AttemptResult { findings: AttemptDetails { reported, ..attempted.findings }, ..attempted });
            }
            // A call reports while it is polled, so a new report is found right after that.
            has_reported |= ctx.reports().is_waiting();
            if has_reported && writing.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            ended.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Writes reports until the call has ended and none waits. Poll it after each poll of the call.
    async fn write_reports(
        self: &Arc<Self>,
        command: &WorkItem<S>,
        reports: &Reports,
        cancel: &CancelSignal,
        has_ended: &AtomicBool,
    ) {
        let has_ended = || has_ended.load(Ordering::Acquire);
        let mut number = command.reported.as_ref().map_or(0, |reported| reported.number);
        let mut backoff = self.committer.store_calls.backoff(0);
        loop {
            when(|| reports.is_waiting() || has_ended()).await;
            let Some(report) = reports.take() else { return };
            number += 1;
            let next_at = self.ctx.env.now().saturating_add(self.ctx.settings.report_interval);
            match self.write_report(command, number, &report).await {
                Ok(true) => {
                    backoff = self.committer.store_calls.backoff(0);
                    self.send_report(command, number, &report);
                    let mut pause = self.ctx.env.sleep(next_at.saturating_sub(self.ctx.env.now()));
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
                    self.ctx.health.store_failed("report", &error);
                    if self.ctx.lifecycle.has_stopped() {
                        return when(has_ended).await;
                    }
                    reports.put_back();
                    self.committer.store_calls.pause_for_store(&mut backoff).await;
                }
            }
        }
    }

    /// Writes one report, which also renews the lease of an exclusive step; false if another process has the row.
    async fn write_report(&self, command: &WorkItem<S>, number: u64, report: &[u8]) -> Result<bool, StoreError> {
        let (began, ttl) = (self.ctx.env.now(), self.ctx.settings.lease_ttl);
        let lease =
            command.held_lease.as_ref().map(|_| Lease { owner: self.committer.scheduler.membership.member_id(), ttl });
        let is_kept = catch_panic("report", self.ctx.store.report(command.work, number, report, lease)).await?;
        self.ctx.health.store_works("report");
        if let (true, Some(kept), Some(lease)) = (is_kept, &command.held_lease, lease) {
            kept.renewed(began.saturating_add(ttl), lease.owner);
        }
        Ok(is_kept)
    }

    /// What a call of this command may report, and the last report of the attempt before it.
    pub(crate) fn reporting(&self, command: &WorkItem<S>) -> Reporting {
        let limit = if command.effect().is_outside() {
            ReportLimit::Bytes(self.ctx.settings.report_bytes_max)
        } else {
            ReportLimit::Refused(IN_TRANSACTION)
        };
        let on_row = command.reported.as_ref().map(|reported| &*reported.progress);
        let kept = || command.saga.state.report_of(command.command).map(str::as_bytes);
        let before = on_row.or_else(kept).map(Arc::from);
        Reporting { limit: Some(limit), before }
    }
}
