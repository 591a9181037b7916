//! Asking the other side what became of a call that was not answered, before it is made again.

use std::sync::Arc;
use std::time::Duration;

use super::attempt::{AttemptResult, erred};
use super::command::WorkItem;
use super::prepared::AttemptDetails;
use super::report::IN_RESOLUTION;
use super::shared::EngineContext;
use crate::env::timeout;
use crate::machine::{Ending, Phase, Resolving, attempts_max};
use crate::saga::StepResolve;
use crate::step::{Args, ReportLimit};
use crate::store::Store;
use crate::unwind::Guarded;

impl<S: Store> EngineContext<S> {
    /// Makes a call; where an earlier one may have taken effect and the step says how to ask for it, that comes first.
    pub(super) async fn ask_or_call(self: &Arc<Self>, command: &WorkItem<S>) -> AttemptResult {
        let Some(resolve) = command.asks() else { return self.attempt_external(command).await };
        let mut asked = self.ask_other_side(command, resolve).await;
        if asked.ending == Ending::NotDone && self.attempt_of(command, &asked.findings).must_settle() {
            if !self.wait_settled(command).await {
                asked.ending = erred("the runtime stops before it is certain that it did not happen");
                return asked;
            }
            asked = self.ask_other_side(command, resolve).await;
            asked.findings.is_settled = true;
        }
        match asked.ending {
            Ending::NotDone if self.attempt_of(command, &asked.findings).may_call() => {
                let is_settled = asked.findings.is_settled;
                let mut called = self.attempt_external(command).await;
                called.findings.is_settled = is_settled;
                called
            }
            Ending::Rejected(reason) => AttemptResult { ending: Ending::Refused(reason), ..asked },
            _ => asked,
        }
    }

    /// Waits until no call of the step is on its way any more; false where the runtime stops first.
    async fn wait_settled(&self, command: &WorkItem<S>) -> bool {
        timeout(&*self.env, command.settle_time(), self.stopping.cancelled()).await.is_err()
    }

    async fn ask_other_side(&self, command: &WorkItem<S>, resolve: &StepResolve) -> AttemptResult {
        let limit = resolve.options.timeout;
        let cancel = self.stopping.child();
        let mut reporting = self.reporting(command);
        reporting.limit = Some(ReportLimit::Refused(IN_RESOLUTION));
        let ctx = self.context(command, limit, &cancel, reporting);
        let args = Args { ctx: &ctx, states: &self.states, outputs: &command.saga.outputs };
        let input = command.saga.input_of(command.step_index());
        let handler = async { Guarded::new((resolve.ask)(args, input)).await.map(Some) };
        self.finish_attempt(command, &ctx, limit, self.keep_lease(command, &cancel, handler)).await.0
    }
}

impl<S: Store> WorkItem<S> {
    /// How the next attempt asks what became of the step, if that is what it begins with.
    fn asks(&self) -> Option<&StepResolve> {
        self.resolve().filter(|_| self.in_doubt)
    }

    /// How the other side can be asked what became of the step.
    pub(super) fn resolve(&self) -> Option<&StepResolve> {
        self.step().resolve.as_ref().filter(|_| !self.is_undo())
    }

    /// The same as the machine sees it.
    pub(super) fn resolving(&self, findings: &AttemptDetails) -> Option<Resolving<'_>> {
        self.resolve().map(|resolve| Resolving {
            policy: &resolve.options.retry,
            settle_time: self.settle_time(),
            turned_round: self.saga.state.phase != Phase::Running,
            is_fresh: self.recovered && !findings.is_settled,
        })
    }

    /// After so long no call of the step is on its way any more.
    fn settle_time(&self) -> Duration {
        self.step().options.timeout.saturating_mul(2)
    }

    /// How often it is attempted before it counts as out of attempts.
    pub(super) fn attempts_max(&self) -> u32 {
        attempts_max(&self.options().retry, self.resolve().map(|resolve| &resolve.options.retry))
    }

    /// How long a lease has to last when an attempt begins: that of an exclusive step is renewed then.
    pub(super) fn lease_needed(&self) -> Duration {
        if self.options().exclusive { Duration::ZERO } else { self.time_limit() }
    }

    /// How long an attempt may take at most.
    pub(super) fn time_limit(&self) -> Duration {
        let Some(resolve) = self.asks() else { return self.options().timeout };
        let once = self.options().timeout.saturating_add(resolve.options.timeout);
        if !self.recovered {
            return once;
        }
        once.saturating_add(self.settle_time()).saturating_add(resolve.options.timeout)
    }
}
