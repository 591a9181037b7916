//! Calls the resolution of a step: it asks the other system what became of a call, before the call is made again.

use std::sync::Arc;

use super::worker::ExternalCalls;
use crate::engine::execute::attempt::{erred, in_span, span_of};
use crate::engine::execute::progress::IN_RESOLUTION;
use crate::engine::instance::{AttemptResult, WorkItem};
use crate::env::{Activity, timeout};
use crate::machine::Ending;
use crate::saga::StepResolve;
use crate::step::{Args, ReportLimit};
use crate::store::Store;
use crate::unwind::Guarded;

impl<S: Store> ExternalCalls<S> {
    /// Makes a call. If an earlier call may have taken effect and the step has a resolution, the resolution comes first.
    pub(crate) async fn resolve_or_call(self: &Arc<Self>, command: &WorkItem<S>) -> AttemptResult {
        let Some(resolve) = command.asks() else { return self.attempt_external(command).await };
        let mut resolved = self.call_resolution(command, resolve).await;
        if resolved.ending == Ending::NotDone
            && self.attempts.decider.attempt_of(command, &resolved.findings).must_settle()
        {
            if !self.wait_settled(command).await {
                resolved.ending = erred("the runtime stops before it is certain that it did not happen");
                return resolved;
            }
            resolved = self.call_resolution(command, resolve).await;
            resolved.findings.is_settled = true;
        }
        match resolved.ending {
            Ending::NotDone if self.attempts.decider.attempt_of(command, &resolved.findings).may_call() => {
                let is_settled = resolved.findings.is_settled;
                let mut called = self.attempt_external(command).await;
                called.findings.is_settled = is_settled;
                called
            }
            Ending::Rejected(reason) => AttemptResult { ending: Ending::Refused(reason), ..resolved },
            _ => resolved,
        }
    }

    /// Waits until no call of the step can be on its way any more; false if the runtime stops first.
    async fn wait_settled(&self, command: &WorkItem<S>) -> bool {
        timeout(&*self.ctx.env, command.step().settle_time(), self.ctx.lifecycle.stopping.cancelled()).await.is_err()
    }

    async fn call_resolution(&self, command: &WorkItem<S>, resolve: &StepResolve) -> AttemptResult {
        let limit = resolve.options.timeout;
        let cancel = self.ctx.lifecycle.stopping.child();
        let mut reporting = self.progress.reporting(command);
        reporting.limit = Some(ReportLimit::Refused(IN_RESOLUTION));
        let ctx = self.attempts.context(command, limit, &cancel, reporting);
        let args = Args { ctx: &ctx, states: &self.ctx.states, outputs: &command.saga.outputs };
        let input = command.saga.input_of(command.step_index());
        let handler = async { Guarded::new(in_span((resolve.ask)(args, input), span_of(command))).await.map(Some) };
        let call = self.leases.keep_lease(command, &cancel, handler);
        self.attempts.finish_attempt(command, &ctx, (Activity::Call, limit), call).await.0
    }
}
