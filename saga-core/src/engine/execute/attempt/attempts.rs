//! Calls the function of a step or of a compensation once.

use std::error::Error;
use std::future::Future;
use std::iter::successors;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::ending::{ending_of, erred, trace};
use super::span::{in_span, span_of};
use crate::engine::context::{EngineContext, inside_step};
use crate::engine::decide::{Decider, tell_of_success};
use crate::engine::execute::progress::IN_TRANSACTION;
use crate::engine::instance::{AttemptDetails, AttemptResult, SagaInstance, WorkItem};
use crate::engine::queue::BatchLimits;
use crate::engine::statistics::Counters;
use crate::env::{Activity, during, timeout};
use crate::machine::Ending;
use crate::saga::{StepRun, StepUndo, Unfinished};
use crate::step::{
    Args, CallKeys, CancelSignal, ContextParts, Emitted, ExternalKey, FailedStep, OptionalOutputs, Reporting,
    StepContext, StepError, TimeLeft,
};
use crate::store::{HandlerVerdict, Store};
use crate::unwind::{Guarded, caught, caught_while};

pub(crate) type Output = Result<Option<Vec<u8>>, Unfinished>;

/// For a compensation: the failure that made the saga compensate.
pub(crate) fn failure_of<S: Store>(command: &WorkItem<S>) -> Option<FailedStep> {
    let failure = command.saga.state.failure.as_ref().filter(|_| command.is_undo())?;
    let step = command.saga.doing(failure.step).to_string();
    Some(FailedStep { step, message: failure.reason.message().to_owned() })
}

/// The outputs of earlier steps that the service says its step reads.
pub(crate) fn optional_outputs<S: Store>(saga: &SagaInstance<S>) -> OptionalOutputs {
    match &saga.definition.told {
        Some(told) if !told.reads.is_empty() => OptionalOutputs {
            reads: told.reads.iter().map(|reads| reads.step).collect(),
            outputs: saga.outputs.clone(),
        },
        _ => OptionalOutputs::default(),
    }
}

pub(crate) fn no_handler() -> Unfinished {
    Unfinished::Failed(StepError::unreadable("the registered definition has no function for it"))
}

/// Calls handlers, and turns what they return into attempt results.
pub(crate) struct Attempts<S: Store> {
    pub(crate) ctx: Arc<EngineContext<S>>,
    pub(crate) decider: Arc<Decider<S>>,
    pub(crate) limits: Arc<BatchLimits>,
    pub(crate) statistics: Arc<Counters>,
}

impl<S: Store> Attempts<S> {
    pub(crate) fn new(
        ctx: Arc<EngineContext<S>>,
        decider: Arc<Decider<S>>,
        limits: Arc<BatchLimits>,
        statistics: Arc<Counters>,
    ) -> Self {
        Self { ctx, decider, limits, statistics }
    }
}

impl<S: Store> Attempts<S> {
    /// Runs a handler on the connection of a transaction.
    pub(crate) async fn attempt_in_transaction(
        &self,
        command: &WorkItem<S>,
        conn: &mut S::Conn,
    ) -> (AttemptResult, HandlerVerdict) {
        let limit = command.options().timeout;
        let ctx = self.context(command, limit, &self.ctx.lifecycle.stopping, Reporting::refused(IN_TRANSACTION));
        let args = Args { ctx: &ctx, states: &self.ctx.states, outputs: &command.saga.outputs };
        let index = command.step_index();
        let step = command.step();
        let input = command.saga.input_of(index);
        let handler = async {
            match (&step.run, &step.undo) {
                (_, Some((StepUndo::Transaction(undo), _))) if command.is_undo() => {
                    let output = command.saga.own_output_of(index).map(|output| &**output);
                    Guarded::new(in_span(undo(conn, args, input, output), span_of(command)))
                        .await
                        .map(|()| None)
                        .map_err(Unfinished::Failed)
                }
                (StepRun::Transaction(run), _) if !command.is_undo() => {
                    Guarded::new(in_span(run(conn, args, input), span_of(command))).await.map(Some)
                }
                _ => Err(no_handler()),
            }
        };
        self.finish_attempt(command, &ctx, (Activity::Transaction, limit), inside_step(handler)).await
    }

    pub(crate) async fn finish_attempt(
        &self,
        command: &WorkItem<S>,
        ctx: &StepContext,
        (activity, limit): (Activity, Duration),
        handler: impl Future<Output = Output>,
    ) -> (AttemptResult, HandlerVerdict) {
        let began = self.ctx.env.now();
        let env = &*self.ctx.env;
        let calling = pin!(caught_while(handler));
        let ended = during(env, activity, timeout(env, limit, calling)).await;
        let mut findings = AttemptDetails {
            attempts: command.attempt_number(),
            took: self.ctx.env.now().saturating_sub(began),
            ..AttemptDetails::default()
        };
        findings.share = findings.took;
        let (ending, verdict) = match ended {
            Err(_) => (erred(format!("it took longer than its time limit of {limit:?}")), HandlerVerdict::Abandon),
            Ok(Err(panic)) => (erred(format!("it panicked: {panic}")), HandlerVerdict::RollBack),
            // A conflict says nothing about the business, however the user classified the error.
            Ok(Ok(Err(Unfinished::Failed(error)))) if self.is_conflict(&error) => {
                (erred(error.to_string()), HandlerVerdict::Conflict)
            }
            Ok(Ok(Err(unfinished))) => (ending_of(unfinished), HandlerVerdict::RollBack),
            Ok(Ok(Ok(output))) => match self.check_effects(command, output, ctx.take_emitted(), &mut findings) {
                Ok(()) => (Ending::Done, HandlerVerdict::Keep),
                Err(message) => (Ending::Unstorable { message }, HandlerVerdict::RollBack),
            },
        };
        trace(command, &ending, findings.attempts);
        (AttemptResult { ending, findings }, verdict)
    }

    /// Whether the error, or a source of it, is a conflict of the store.
    pub(crate) fn is_conflict(&self, error: &StepError) -> bool {
        let is_conflict = || {
            let first = error.cause().map(|source| source as &(dyn Error + 'static));
            successors(first, |&error: &&(dyn Error + 'static)| error.source())
                .any(|error| self.ctx.store.is_conflict(error))
        };
        // `source` of a user's error is the user's code, and may panic.
        caught(is_conflict).unwrap_or_default()
    }

    /// Keeps the output and the emitted events of a handler.
    ///
    /// # Errors
    /// Says what cannot be stored.
    pub(crate) fn check_effects(
        &self,
        command: &WorkItem<S>,
        output: Option<Vec<u8>>,
        mut emitted: Vec<Emitted>,
        found: &mut AttemptDetails,
    ) -> Result<(), String> {
        if let Some(told) = &command.saga.definition.told {
            tell_of_success(command, told, output.as_deref(), &mut emitted)?;
        }
        found.output = output
            .map(|output| {
                self.decider.check_length(output).map_err(|problem| format!("its output cannot be stored: {problem}"))
            })
            .transpose()?;
        found.emitted = emitted;
        let (count, max) = (found.emitted.len(), self.ctx.settings.messages_max);
        if count > max {
            return Err(format!("it emitted {count} messages; `messages_max` allows {max}"));
        }
        for event in &found.emitted {
            let (bytes, max) = (event.payload.len(), self.ctx.settings.payload_bytes_max);
            if bytes > max {
                return Err(format!("its event `{}` has {bytes} bytes; `payload_bytes_max` allows {max}", event.name));
            }
        }
        Ok(())
    }

    pub(crate) fn context(
        &self,
        command: &WorkItem<S>,
        limit: Duration,
        cancel: &CancelSignal,
        reporting: Reporting,
    ) -> StepContext {
        let saga = &command.saga;
        // A hosted step has the key of the saga that asked for it.
        let key = saga.definition.coordinator_key(&saga.key);
        let outside =
            |step| ExternalKey::of(self.ctx.settings.namespace.as_ref(), &saga.tenant, &key, saga.key.numbered(step));
        let until = self.ctx.env.now().saturating_add(limit);
        let keys = CallKeys {
            key: outside(command.step_id()),
            do_key: command.is_undo().then(|| outside(saga.doing(command.step_index()))),
            saga_key: key.shared(),
            saga_name: Arc::clone(&saga.definition.id.name),
        };
        let time_left = Some(TimeLeft::Until(until, Arc::clone(&self.ctx.env)));
        StepContext::new(ContextParts {
            failure: failure_of(command),
            traceparent: saga.state.traceparent().map(str::to_owned),
            earlier: optional_outputs(saga),
            reporting,
            locked: command.locked.clone(),
            ..ContextParts::new(keys, command.attempt_number(), command.fence(), time_left, cancel.clone())
        })
    }

    /// Whether the step may share a transaction: not if it is slow, or met locks lately.
    pub(crate) fn joins_others(&self, command: &WorkItem<S>) -> bool {
        command.options().grouped && self.limits.is_open(command.step().name)
    }
}
