//! One call of a step function or a compensation.

use std::error::Error;
use std::future::Future;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use super::choreography::tell_of_success;
use super::command::WorkItem;
use super::guard::inside_step;
use super::in_flight::SagaInstance;
use super::prepared::AttemptDetails;
use super::report::IN_TRANSACTION;
use super::shared::EngineContext;
use crate::env::timeout;
use crate::log;
use crate::machine::{Attempt, Ending, Next, after_attempt};
use crate::saga::{StepRun, StepUndo, Unfinished};
use crate::step::{
    Args, CancelSignal, ContextParts, Emitted, FailedStep, OptionalOutputs, OutsideKey, Reporting, StepContext,
    StepError, StepErrorKind, TimeLeft, limited,
};
use crate::store::{HandlerVerdict, Store};
use crate::unwind::{Guarded, caught, caught_while};

type Output = Result<Option<Vec<u8>>, Unfinished>;

/// An attempt that was made.
#[derive(Debug)]
pub(super) struct AttemptResult {
    pub(super) ending: Ending,
    pub(super) findings: AttemptDetails,
}

impl<S: Store> EngineContext<S> {
    /// Runs a handler on the connection of a transaction.
    pub(super) async fn attempt_in_transaction(
        &self,
        command: &WorkItem<S>,
        conn: &mut S::Conn,
    ) -> (AttemptResult, HandlerVerdict) {
        let limit = command.options().timeout;
        let ctx = self.context(command, limit, &self.stopping, Reporting::refused(IN_TRANSACTION));
        let args = Args { ctx: &ctx, states: &self.states, outputs: &command.saga.outputs };
        let index = command.step_index();
        let step = command.step();
        let input = command.saga.input_of(index);
        let handler = async {
            match (&step.run, &step.undo) {
                (_, Some((StepUndo::Transaction(undo), _))) if command.is_undo() => {
                    let output = command.saga.own_output_of(index).map(|output| &**output);
                    Guarded::new(undo(conn, args, input, output)).await.map(|()| None).map_err(Unfinished::Failed)
                }
                (StepRun::Transaction(run), _) if !command.is_undo() => {
                    Guarded::new(run(conn, args, input)).await.map(Some)
                }
                _ => Err(no_handler()),
            }
        };
        self.finish_attempt(command, &ctx, limit, inside_step(handler)).await
    }

    /// Runs a handler that calls the outside world.
    pub(super) async fn attempt_external(self: &Arc<Self>, command: &WorkItem<S>) -> AttemptResult {
        let limit = command.options().timeout;
        let cancel = self.stopping.child();
        let ctx = self.context(command, limit, &cancel, self.reporting(command));
        let args = Args { ctx: &ctx, states: &self.states, outputs: &command.saga.outputs };
        let step = command.step();
        let input = command.saga.input_of(command.step_index());
        let handler = async {
            match (&step.run, &step.undo) {
                (_, Some((StepUndo::External(undo), _))) if command.is_undo() => {
                    let output = command.saga.own_output_of(command.step_index()).map(|output| &**output);
                    Guarded::new(undo(args, input, output)).await.map(|()| None).map_err(Unfinished::Failed)
                }
                (StepRun::External(run), _) if !command.is_undo() => Guarded::new(run(args, input)).await.map(Some),
                _ => Err(no_handler()),
            }
        };
        let attempt = self.finish_attempt(command, &ctx, limit, self.keep_lease(command, &cancel, handler));
        self.while_reporting(command, &ctx, &cancel, async { attempt.await.0 }).await
    }

    /// What comes after an attempt of this command.
    pub(super) fn after(&self, command: &WorkItem<S>, attempted: &AttemptResult) -> Next {
        after_attempt(&self.attempt_of(command, &attempted.findings), attempted.ending.clone())
    }

    /// An attempt of this command as the machine sees it.
    pub(super) fn attempt_of<'a>(&self, command: &'a WorkItem<S>, findings: &AttemptDetails) -> Attempt<'a> {
        let step = command.step_index();
        Attempt {
            step,
            undo: command.is_undo(),
            effect: command.effect(),
            side: command.saga.definition.shape.side(command.saga.state.base(step)),
            policy: &command.options().retry,
            attempts: findings.attempts,
            in_doubt: command.in_doubt,
            informed: command.saga.own_output_of(step).is_some(),
            resolving: command.resolving(findings),
            // While nothing has failed before, the limit for all attempts begins now.
            retrying_for: match command.retrying_for {
                Duration::ZERO => Duration::ZERO,
                retrying_for => retrying_for.saturating_add(findings.took),
            },
            random: self.env.random(),
        }
    }

    pub(super) async fn finish_attempt(
        &self,
        command: &WorkItem<S>,
        ctx: &StepContext,
        limit: Duration,
        handler: impl Future<Output = Output>,
    ) -> (AttemptResult, HandlerVerdict) {
        let began = self.env.now();
        let ended = timeout(&*self.env, limit, caught_while(handler)).await;
        let mut findings = AttemptDetails {
            attempts: command.attempt_number(),
            took: self.env.now().saturating_sub(began),
            ..AttemptDetails::default()
        };
        findings.share = findings.took;
        let (ending, verdict) = match ended {
            Err(_) => (erred(format!("it took longer than its time limit of {limit:?}")), HandlerVerdict::Abandon),
            Ok(Err(panic)) => (erred(format!("it panicked: {panic}")), HandlerVerdict::RollBack),
            // Whatever it was classified as: it says nothing about the business.
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

    /// Whether the handler failed because its transaction met another one, as far as its error still tells.
    pub(super) fn is_conflict(&self, error: &StepError) -> bool {
        let is_conflict = || {
            let first = error.cause().map(|source| source as &(dyn Error + 'static));
            successors(first, |&error: &&(dyn Error + 'static)| error.source())
                .any(|error| self.store.is_conflict(error))
        };
        // What is behind an error of the user is asked of the user's own code.
        caught(is_conflict).unwrap_or_default()
    }

    /// Whether what a handler gave and emitted can be stored; then it is noted.
    pub(super) fn check_effects(
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
                self.check_length(output).map_err(|problem| format!("its output cannot be stored: {problem}"))
            })
            .transpose()?;
        found.emitted = emitted;
        let (count, max) = (found.emitted.len(), self.settings.messages_max);
        if count > max {
            return Err(format!("it emitted {count} messages; `messages_max` allows {max}"));
        }
        for event in &found.emitted {
            let (bytes, max) = (event.payload.len(), self.settings.payload_bytes_max);
            if bytes > max {
                return Err(format!("its event `{}` has {bytes} bytes; `payload_bytes_max` allows {max}", event.name));
            }
        }
        Ok(())
    }

    pub(super) fn context(
        &self,
        command: &WorkItem<S>,
        limit: Duration,
        cancel: &CancelSignal,
        reporting: Reporting,
    ) -> StepContext {
        let saga = &command.saga;
        // A step that is hosted for another service has the key that it has there.
        let key = saga.outside_key();
        let outside =
            |step| OutsideKey::of(self.settings.namespace.as_ref(), &saga.tenant, &key, saga.key.numbered(step));
        let until = self.env.now().saturating_add(limit);
        StepContext::new(ContextParts {
            key: outside(command.step_id()),
            do_key: command.is_undo().then(|| outside(saga.doing(command.step_index()))),
            saga_key: key.shared(),
            attempt: command.attempt_number(),
            fence: command.fence(),
            time_left: Some(TimeLeft::Until(until, Arc::clone(&self.env))),
            cancel: cancel.clone(),
            failure: failure_of(command),
            earlier: command.saga.earlier(),
            reporting,
        })
    }
}

impl<S: Store> SagaInstance<S> {
    /// What the service says that its step reads.
    pub(super) fn earlier(&self) -> OptionalOutputs {
        match &self.definition.told {
            Some(told) if !told.reads.is_empty() => OptionalOutputs {
                reads: told.reads.iter().map(|reads| reads.step).collect(),
                outputs: self.outputs.clone(),
            },
            _ => OptionalOutputs::default(),
        }
    }
}

/// Why the saga compensates, for a compensation.
fn failure_of<S: Store>(command: &WorkItem<S>) -> Option<FailedStep> {
    let failure = command.saga.state.failure.as_ref().filter(|_| command.is_undo())?;
    let step = command.saga.doing(failure.step).to_string();
    Some(FailedStep { step, message: failure.reason.message().to_owned() })
}

/// What an attempt ended with that gave no bytes. The error may be the user's own: where its text or its end panics, the
/// attempt is one without an answer.
pub(super) fn ending_of(unfinished: Unfinished) -> Ending {
    let ending = caught(|| ending_in_words(unfinished));
    ending.unwrap_or_else(|panic| erred(format!("its error panicked: {panic}")))
}

fn ending_in_words(unfinished: Unfinished) -> Ending {
    let error = match unfinished {
        Unfinished::Unstorable(message) => return Ending::Unstorable { message },
        Unfinished::NotDone => return Ending::NotDone,
        Unfinished::Failed(error) => error,
    };
    match error.kind() {
        StepErrorKind::Transient => erred(error.to_string()),
        StepErrorKind::NotSent => Ending::Erred { message: limited(error.to_string()), not_sent: true },
        StepErrorKind::Stuck => Ending::Undecodable { message: limited(error.to_string()) },
        StepErrorKind::Rejected => match error.into_rejection() {
            Ok(reason) => Ending::Rejected(reason),
            Err(error) => erred(error.to_string()),
        },
    }
}

pub(super) fn erred(message: impl Into<String>) -> Ending {
    Ending::Erred { message: limited(message.into()), not_sent: false }
}

fn no_handler() -> Unfinished {
    Unfinished::Failed(StepError::stuck("the registered definition has no function for it"))
}

pub(super) fn trace<S: Store>(command: &WorkItem<S>, ending: &Ending, attempt: u32) {
    let (key, member) = (&command.saga.key, command.saga.tenant.as_str());
    let step = match ending {
        // Who does not listen pays for nothing.
        Ending::Done if !log::is_verbose() => return,
        _ => command.step_id(),
    };
    match ending {
        Ending::Done => log::debug!(tenant = member, %key, %step, attempt, "done"),
        Ending::NotDone => log::info!(tenant = member, %key, %step, attempt, "asked for, and not done so far"),
        Ending::Rejected(reason) | Ending::Refused(reason) => {
            log::info!(tenant = member, %key, %step, attempt, %reason, "rejected");
        }
        Ending::Erred { message, .. } => {
            log::info!(tenant = member, %key, %step, attempt, error = message, "failed; it may be tried again");
        }
        Ending::Vanished => log::warn!(tenant = member, %key, %step, attempt, "its process ended each time"),
        Ending::Unstorable { message } | Ending::Undecodable { message } | Ending::Broke { message } => {
            log::warn!(tenant = member, %key, %step, attempt, error = message, "cannot go on");
        }
    }
}

impl<S: Store> WorkItem<S> {
    /// Which attempt is the next one, or the one under way. That of a suspect was written down before it began.
    pub(super) fn attempt_number(&self) -> u32 {
        if self.recovered { self.attempts.max(1) } else { self.attempts + 1 }
    }
}
