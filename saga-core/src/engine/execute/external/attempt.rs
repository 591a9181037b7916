//! One attempt of an external step.

use std::sync::Arc;

use super::worker::ExternalCalls;
use crate::engine::execute::attempt::{in_span, no_handler, span_of};
use crate::engine::instance::{AttemptResult, WorkItem};
use crate::env::Activity;
use crate::saga::{StepRun, StepUndo, Unfinished};
use crate::step::Args;
use crate::store::Store;
use crate::unwind::Guarded;

impl<S: Store> ExternalCalls<S> {
    /// Calls the handler of an external step, with its lease kept and its progress reports written.
    pub(crate) async fn attempt_external(self: &Arc<Self>, command: &WorkItem<S>) -> AttemptResult {
        let limit = command.options().timeout;
        let cancel = self.ctx.lifecycle.stopping.child();
        let ctx = self.attempts.context(command, limit, &cancel, self.progress.reporting(command));
        let args = Args { ctx: &ctx, states: &self.ctx.states, outputs: &command.saga.outputs };
        let step = command.step();
        let input = command.saga.input_of(command.step_index());
        let handler = async {
            match (&step.run, &step.undo) {
                (_, Some((StepUndo::External(undo), _))) if command.is_undo() => {
                    let output = command.saga.own_output_of(command.step_index()).map(|output| &**output);
                    Guarded::new(in_span(undo(args, input, output), span_of(command)))
                        .await
                        .map(|()| None)
                        .map_err(Unfinished::Failed)
                }
                (StepRun::External(run), _) if !command.is_undo() => {
                    Guarded::new(in_span(run(args, input), span_of(command))).await.map(Some)
                }
                _ => Err(no_handler()),
            }
        };
        let call = self.leases.keep_lease(command, &cancel, handler);
        let attempt = self.attempts.finish_attempt(command, &ctx, (Activity::Call, limit), call);
        self.progress.while_reporting(command, &ctx, &cancel, async { attempt.await.0 }).await
    }
}
